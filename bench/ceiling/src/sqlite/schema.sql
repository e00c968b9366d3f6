-- The tables and indexes of the product's SQLite store, kept the same by hand: the ceiling imports nothing of it.

CREATE TABLE IF NOT EXISTS task (
  owner                       TEXT    NOT NULL,
  id                          TEXT    NOT NULL,

  -- Its place in the family. The root of a family has no root, parent and since of its own here: it is the root.
  root                        TEXT,
  parent                      TEXT,
  family_since                INTEGER,
  depth                       INTEGER NOT NULL,
  children                    INTEGER NOT NULL,
  ordinal                     INTEGER NOT NULL,

  -- What it is born with.
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
  spent                       INTEGER NOT NULL, -- attempts that came to nothing
  questions_asked             INTEGER NOT NULL,
  message                     TEXT,
  phase                       TEXT    NOT NULL, -- queued, running, waiting, parked, settled
  not_before                  INTEGER,          -- queued, and waiting if it is in the queue
  node                        TEXT,             -- running, and waiting while an attempt holds it
  run_since                   INTEGER,          -- as node
  questions                   TEXT,             -- waiting: the open questions as JSON
  wake_at                     INTEGER,          -- parked, and waiting while no attempt holds it: when to wake it
  for_children                INTEGER,          -- likewise: whether the end of a child wakes it, 0 or 1
  outcome                     TEXT,             -- settled: answer, error, refusal, cancelled
  settled_at                  INTEGER,          -- settled
  due_at                      INTEGER,          -- when the sweep must look at it

  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- Each index carries the key at its end, so equal times come in the order of keys.
CREATE INDEX IF NOT EXISTS task_queued ON task (tool, version, not_before, created_at) WHERE not_before IS NOT NULL;
CREATE INDEX IF NOT EXISTS task_due    ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS task_open   ON task (owner, id) WHERE settled_at IS NULL;
CREATE INDEX IF NOT EXISTS task_child  ON task (owner, parent, ordinal) WHERE parent IS NOT NULL;

-- The request's arguments.
CREATE TABLE IF NOT EXISTS input (
  owner  TEXT NOT NULL,
  id     TEXT NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- What a settled task ended with: the body of an answer; the code, message and data (as body) of a refusal.
CREATE TABLE IF NOT EXISTS outcome (
  owner    TEXT NOT NULL,
  id       TEXT NOT NULL,
  body     TEXT,
  code     INTEGER,
  message  TEXT,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- How far a task is. NULL stands for NaN, which SQLite cannot store.
CREATE TABLE IF NOT EXISTS progress (
  owner    TEXT    NOT NULL,
  id       TEXT    NOT NULL,
  done     REAL,
  total    REAL,
  message  TEXT,
  at       INTEGER NOT NULL,
  PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

-- What attempts did.
CREATE TABLE IF NOT EXISTS record (
  owner     TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  epoch     INTEGER NOT NULL,
  fork      TEXT    NOT NULL,
  seq       INTEGER NOT NULL,
  key       TEXT    NOT NULL,
  digest    INTEGER NOT NULL,
  output    TEXT,
  question  TEXT, -- the key of the question that it waits for or waited for
  PRIMARY KEY (owner, id, epoch, fork, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS record_question ON record (owner, id, question) WHERE question IS NOT NULL;

ALTER TABLE task ADD COLUMN small_input TEXT;
ALTER TABLE task ADD COLUMN small_outcome TEXT;

CREATE INDEX IF NOT EXISTS task_turn ON task (tool, version, owner, not_before, created_at) WHERE not_before IS NOT NULL;
DROP INDEX task_queued;
CREATE INDEX IF NOT EXISTS task_queued ON task (tool, version, not_before) WHERE not_before IS NOT NULL;

ALTER TABLE task ADD COLUMN checksum INTEGER;
ALTER TABLE task ADD COLUMN input_checksum INTEGER;
ALTER TABLE record ADD COLUMN checksum INTEGER;

CREATE TABLE IF NOT EXISTS journal (
  owner     TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  epoch     INTEGER NOT NULL,
  fork      TEXT    NOT NULL,
  seq       INTEGER NOT NULL,
  kind      TEXT    NOT NULL,
  name      TEXT    NOT NULL,
  digest    INTEGER NOT NULL,
  state     TEXT    NOT NULL,
  output    TEXT,
  question  TEXT,
  took_ms   INTEGER,
  note      TEXT,
  attempt   INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  checksum  INTEGER,
  PRIMARY KEY (owner, id, epoch, fork, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO journal (owner, id, epoch, fork, seq, kind, name, digest, state, output, question, attempt, at)
  SELECT owner, id, epoch, fork, seq, 'question', key, digest,
    iif(output IS NULL, 'open', iif(output ->> '$."longhaul/not-answered"' IS NULL, 'done', 'failed')),
    coalesce(output ->> '$."longhaul/not-answered"', output),
    question, iif(epoch > 0, epoch, 1), 0
  FROM record;
DROP TABLE record;
CREATE INDEX IF NOT EXISTS journal_question ON journal (owner, id, question) WHERE question IS NOT NULL;
CREATE TABLE IF NOT EXISTS attempt (
  owner     TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  attempt   INTEGER NOT NULL,
  node      TEXT    NOT NULL,
  since     INTEGER NOT NULL,
  ended_at  INTEGER NOT NULL,
  end       TEXT    NOT NULL,
  reason    TEXT,
  PRIMARY KEY (owner, id, attempt)
) STRICT, WITHOUT ROWID;
ALTER TABLE task DROP COLUMN for_children;
ALTER TABLE task ADD COLUMN wake_children TEXT;
CREATE INDEX IF NOT EXISTS task_open_child ON task (owner, parent, ordinal) WHERE parent IS NOT NULL AND settled_at IS NULL;
CREATE INDEX IF NOT EXISTS task_asking_child ON task (owner, parent, ordinal) WHERE parent IS NOT NULL AND questions IS NOT NULL;
