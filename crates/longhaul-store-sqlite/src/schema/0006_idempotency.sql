-- The idempotency keys of creations. A row is deleted with the family of its task.
CREATE TABLE idempotency (
  owner     TEXT    NOT NULL,
  key       TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  digest    BLOB    NOT NULL, -- identifies the request that created the task
  checksum  INTEGER NOT NULL,
  PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_task ON idempotency (owner, id);
