-- The rows and indexes of the product's SQLite store, kept the same by hand: the ceiling imports nothing of it.

CREATE TABLE IF NOT EXISTS task (
  owner             TEXT    NOT NULL,
  id                TEXT    NOT NULL,
  root_id           TEXT    NOT NULL,
  parent_id         TEXT,
  tool              TEXT    NOT NULL,
  tool_version      TEXT    NOT NULL,
  phase             INTEGER NOT NULL,  -- 0 queued, 1 running, 2 waiting, 3 settled
  outcome_kind      INTEGER,           -- 0 answer, 1 tool error, 2 refusal, 3 cancelled
  revision          INTEGER NOT NULL,
  fence             INTEGER NOT NULL,
  attempt           INTEGER NOT NULL,
  node              INTEGER,
  on_crash          INTEGER NOT NULL,
  generation        INTEGER NOT NULL,
  created_ms        INTEGER NOT NULL,
  updated_ms        INTEGER NOT NULL,
  started_ms        INTEGER,
  settled_ms        INTEGER,
  due_ms            INTEGER,           -- the running-time limit while it runs, the end of retention afterwards
  retention_kind    INTEGER NOT NULL,
  retention_ms      INTEGER,
  running_ms_max    INTEGER NOT NULL,
  poll_interval_ms  INTEGER NOT NULL,
  status_message    TEXT,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID, STRICT;

CREATE INDEX IF NOT EXISTS task_queued  ON task (tool, created_ms) WHERE phase = 0;
CREATE INDEX IF NOT EXISTS task_running ON task (node)             WHERE phase = 1;
CREATE INDEX IF NOT EXISTS task_due     ON task (due_ms)           WHERE due_ms IS NOT NULL;

CREATE TABLE IF NOT EXISTS input (
  owner      TEXT NOT NULL,
  id         TEXT NOT NULL,
  arguments  BLOB NOT NULL,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID, STRICT;

CREATE TABLE IF NOT EXISTS outcome (
  owner    TEXT NOT NULL,
  id       TEXT NOT NULL,
  payload  BLOB NOT NULL,
  PRIMARY KEY (owner, id)
) WITHOUT ROWID, STRICT;
