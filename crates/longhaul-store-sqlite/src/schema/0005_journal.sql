-- The journal replaces `record`: what the attempts of a task did, with its kind, state, attempt and time.
CREATE TABLE journal (
  owner     TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  epoch     INTEGER NOT NULL,
  fork      TEXT    NOT NULL,
  seq       INTEGER NOT NULL,
  kind      TEXT    NOT NULL, -- step, question, timer, subtask, now, random, race
  name      TEXT    NOT NULL,
  digest    INTEGER NOT NULL,
  state     TEXT    NOT NULL, -- open, retrying, done, failed
  output    TEXT,             -- retrying and done: JSON; failed: the reason
  question  TEXT,             -- the key of the question, if the entry is one
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
CREATE INDEX journal_question ON journal (owner, id, question) WHERE question IS NOT NULL;

-- Attempts that ended while their task went on.
CREATE TABLE attempt (
  owner     TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  attempt   INTEGER NOT NULL,
  node      TEXT    NOT NULL,
  since     INTEGER NOT NULL,
  ended_at  INTEGER NOT NULL,
  end       TEXT    NOT NULL, -- lost, stopped, parked, released
  reason    TEXT,             -- released
  PRIMARY KEY (owner, id, attempt)
) STRICT, WITHOUT ROWID;

-- The ranges of children that a parked task waits for, as JSON. No program has written `for_children` for a task that waits.
ALTER TABLE task DROP COLUMN for_children;
ALTER TABLE task ADD COLUMN wake_children TEXT;

-- Finds out whether children of a range are open without reading those that have ended.
CREATE INDEX task_open_child ON task (owner, parent, ordinal) WHERE parent IS NOT NULL AND settled_at IS NULL;
-- Finds a child that waits for an answer.
CREATE INDEX task_asking_child ON task (owner, parent, ordinal) WHERE parent IS NOT NULL AND questions IS NOT NULL;
