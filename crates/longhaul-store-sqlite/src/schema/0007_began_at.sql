-- When the attempt in `node` was claimed, if that is not its `run_since`. The checksum includes it only if it is not NULL.
ALTER TABLE task ADD COLUMN began_at INTEGER;
