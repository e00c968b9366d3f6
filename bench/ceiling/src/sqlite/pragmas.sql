-- For every connection. The same as the product's, or the comparison is not one.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -1024;
PRAGMA mmap_size = 1073741824;
PRAGMA wal_autocheckpoint = 4000;
