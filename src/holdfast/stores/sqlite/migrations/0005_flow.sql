-- Flow control: what a job has to pass before each of its runs (holdfast/core/gates.py), unique keys, what operators
-- say about all that, and who said it.

-- The gates of a job as text (holdfast/core/gates_text.py); NULL where it has none.
ALTER TABLE job ADD COLUMN gates TEXT;
UPDATE job SET gates = json_array(json_array('limit', limit_key, limit_size, '', 'wait')) WHERE limit_key IS NOT NULL;
ALTER TABLE job DROP COLUMN limit_key;
ALTER TABLE job DROP COLUMN limit_size;

-- What is known of a gate beside its slots and waiters; none where nothing is. `full_at`: of a rate, when its bucket
-- will be full again. `due_at`: when to look whether somebody who waits may pass.
CREATE TABLE gate (
    kind     TEXT NOT NULL,
    key      TEXT NOT NULL,
    full_at  REAL,
    due_at   REAL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX gate_due ON gate (due_at) WHERE due_at IS NOT NULL;

-- Slots of limits, and the probes of breakers; a job may hold several.
CREATE TABLE slot_of_kind (
    kind    TEXT NOT NULL,
    key     TEXT NOT NULL,
    job_id  BLOB NOT NULL,
    PRIMARY KEY (kind, key, job_id)
) WITHOUT ROWID;
INSERT INTO slot_of_kind (kind, key, job_id) SELECT 'limit', key, job_id FROM slot;
DROP TABLE slot;
ALTER TABLE slot_of_kind RENAME TO slot;
CREATE INDEX slot_by_job ON slot (job_id);

-- Parked jobs are part of a queue's depth.
ALTER TABLE parked ADD COLUMN queue TEXT NOT NULL DEFAULT 'default';
UPDATE parked SET queue = coalesce((SELECT j.queue FROM job j WHERE j.id = parked.job_id), 'default');
CREATE INDEX parked_by_queue ON parked (queue);
ALTER TABLE depth ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
UPDATE depth SET parked = (SELECT count(*) FROM parked p WHERE p.queue = depth.queue);

-- An operator has closed it; what it has goes on.
ALTER TABLE queue_setting ADD COLUMN draining INTEGER NOT NULL DEFAULT 0;

-- Circuit breakers that have failed, or that an operator has touched. `recent`: times of failures, as JSON.
CREATE TABLE breaker (
    name        TEXT PRIMARY KEY,
    recent      TEXT NOT NULL,
    open_until  REAL,
    held        INTEGER NOT NULL
) WITHOUT ROWID;

-- Who has what has to be unique. `first_at`: when the first was enqueued of those that were replaced one by the other.
CREATE TABLE unique_key (
    key         TEXT PRIMARY KEY,
    job_id      BLOB NOT NULL,
    first_at    REAL NOT NULL,
    expires_at  REAL
) WITHOUT ROWID;
CREATE INDEX unique_key_by_end ON unique_key (expires_at) WHERE expires_at IS NOT NULL;

-- What operators say, over what is written in tasks: of a limit (size, pace), or that a task or tenant is paused.
CREATE TABLE rule (
    what   TEXT NOT NULL CHECK (what IN ('limit', 'task', 'tenant')),
    name   TEXT NOT NULL,
    size   INTEGER,
    count  REAL,
    per_s  REAL,
    burst  INTEGER,
    PRIMARY KEY (what, name)
) WITHOUT ROWID;

-- Who changed what.
CREATE TABLE setting_change (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    at      REAL NOT NULL,
    by      TEXT NOT NULL,
    what    TEXT NOT NULL,
    name    TEXT NOT NULL,
    before  TEXT,
    after   TEXT
);
