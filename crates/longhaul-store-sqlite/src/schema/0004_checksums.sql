-- Checksums of what a row says. NULL in a row that an older version of this program wrote.
ALTER TABLE task   ADD COLUMN checksum       INTEGER; -- the task with its outcome, which may be in `outcome`
ALTER TABLE task   ADD COLUMN input_checksum INTEGER; -- the arguments, which may be in `input`
ALTER TABLE record ADD COLUMN checksum       INTEGER;
