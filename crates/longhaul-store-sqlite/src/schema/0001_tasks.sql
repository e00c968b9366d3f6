-- The names are those of the types in `longhaul-task`. Times are milliseconds since the epoch.
--
-- Every byte and every index entry is written to the log before a creation is acknowledged. So values that can be
-- derived are not stored, payloads are apart from the row that changes, and indexes are partial.

CREATE TABLE task (
  owner                       TEXT    NOT NULL,
  id                          TEXT    NOT NULL,

  -- The place in the family. NULL in the row of a root: root (itself), parent, family_since (created_at).
  root                        TEXT,
  parent                      TEXT,
  family_since                INTEGER,
  depth                       INTEGER NOT NULL,
  children                    INTEGER NOT NULL,
  ordinal                     INTEGER NOT NULL,

  -- What never changes.
  tool                        TEXT    NOT NULL,
  version                     TEXT    NOT NULL,
  origin                      TEXT    NOT NULL,
  on_crash                    TEXT    NOT NULL, -- fail, retry, resume
  attempts_max                INTEGER NOT NULL,
  backoff_ms                  INTEGER NOT NULL,
  backoff_ms_max              INTEGER NOT NULL,
  running_ms_max              INTEGER NOT NULL,
  life_ms_max                 INTEGER NOT NULL,
  retention_from_creation_ms  INTEGER,          -- neither of the two: unlimited
  retention_from_end_ms       INTEGER,
  created_at                  INTEGER NOT NULL,

  -- What changes.
  updated_at                  INTEGER NOT NULL,
  revision                    INTEGER NOT NULL,
  fence                       INTEGER NOT NULL,
  attempt                     INTEGER NOT NULL,
  spent                       INTEGER NOT NULL, -- attempts that were lost or given back
  questions_asked             INTEGER NOT NULL,
  message                     TEXT,
  phase                       TEXT    NOT NULL, -- queued, running, waiting, parked, settled
  not_before                  INTEGER,          -- queued, and waiting if it is in the queue
  node                        TEXT,             -- running, and waiting while an attempt holds it
  run_since                   INTEGER,          -- as node; also since when it waits for not_before or wake_at
  questions                   TEXT,             -- waiting: the open questions as JSON
  wake_at                     INTEGER,          -- parked, and waiting while no attempt holds it: when to wake it
  for_children                INTEGER,          -- as wake_at: whether the end of a child wakes it, 0 or 1
  outcome                     TEXT,             -- settled: answer, error, refusal, cancelled
  settled_at                  INTEGER,          -- settled
  due_at                      INTEGER,          -- when the sweep must look at it

  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- Each index ends with the key, so equal times are in the order of keys.
CREATE INDEX task_queued ON task (tool, version, not_before, created_at) WHERE not_before IS NOT NULL;
CREATE INDEX task_due    ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_open   ON task (owner, id) WHERE settled_at IS NULL;
CREATE INDEX task_child  ON task (owner, parent, ordinal) WHERE parent IS NOT NULL;

-- The arguments of the request.
CREATE TABLE input (
  owner  TEXT NOT NULL,
  id     TEXT NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- The outcome of a settled task: the body of an answer; the code (if the handler chose one), message and data (as body)
-- of a refusal.
CREATE TABLE outcome (
  owner    TEXT NOT NULL,
  id       TEXT NOT NULL,
  body     TEXT,
  code     INTEGER,
  message  TEXT,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- How far a task is. NULL stands for NaN, which SQLite cannot store.
CREATE TABLE progress (
  owner    TEXT    NOT NULL,
  id       TEXT    NOT NULL,
  done     REAL,
  total    REAL,
  message  TEXT,
  at       INTEGER NOT NULL,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- The recorded operations of attempts.
CREATE TABLE record (
  owner     TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  epoch     INTEGER NOT NULL,
  fork      TEXT    NOT NULL,
  seq       INTEGER NOT NULL,
  key       TEXT    NOT NULL,
  digest    INTEGER NOT NULL,
  output    TEXT,
  question  TEXT, -- the key of the question, if the operation is one
  PRIMARY KEY (owner, id, epoch, fork, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX record_question ON record (owner, id, question) WHERE question IS NOT NULL;

CREATE TABLE secret (
  name   TEXT NOT NULL PRIMARY KEY,
  value  BLOB NOT NULL
) STRICT, WITHOUT ROWID;
