-- The tables of a job's life. A job's state is the table it is in; a job is in exactly one of
-- ready, timer, active, blocked, parked, done, dead. Ids are 16 bytes (UUIDv7), times are epoch seconds.

-- The body, inserted once; only a dead job's payload may be edited.
CREATE TABLE job (
    id            BLOB PRIMARY KEY,
    task          TEXT NOT NULL,
    queue         TEXT NOT NULL,
    priority      INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    tenant        TEXT NOT NULL DEFAULT '',
    payload       BLOB NOT NULL,
    options       BLOB,
    max_attempts  INTEGER,
    tags          TEXT,
    metadata      BLOB,
    headers       BLOB,
    expires_at    REAL,
    limit_key     TEXT,
    limit_size    INTEGER,
    created_at    REAL NOT NULL
) WITHOUT ROWID;

-- May be claimed now; the primary key is the order of the claim within a lane.
CREATE TABLE ready (
    queue       TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    tag         INTEGER NOT NULL DEFAULT 0,
    seq         INTEGER NOT NULL,
    job_id      BLOB NOT NULL UNIQUE,
    attempt     INTEGER NOT NULL,
    losses      INTEGER NOT NULL,
    crashes     INTEGER NOT NULL,
    entered_at  REAL NOT NULL,
    PRIMARY KEY (queue, priority, tag, seq)
) WITHOUT ROWID;

-- Jobs that must run alone, of which there are few.
CREATE INDEX ready_alone ON ready (queue, priority) WHERE losses >= 2;

-- Waits for a time: delayed, retrying, snoozed.
CREATE TABLE timer (
    due_at   REAL NOT NULL,
    job_id   BLOB NOT NULL UNIQUE,
    attempt  INTEGER NOT NULL,
    losses   INTEGER NOT NULL,
    crashes  INTEGER NOT NULL,
    PRIMARY KEY (due_at, job_id)
) WITHOUT ROWID;

-- The lease: one worker, one token. Keeps the place in the queue, so that recovery does not queue at the tail.
-- No index by worker: the table holds what runs now, and only heartbeats and reapers read it as a whole.
CREATE TABLE active (
    job_id         BLOB PRIMARY KEY,
    token          INTEGER NOT NULL,
    worker         BLOB NOT NULL,
    attempt        INTEGER NOT NULL,
    queue          TEXT NOT NULL,
    priority       INTEGER NOT NULL,
    tag            INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    losses         INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    started_at     REAL NOT NULL,
    cancel_reason  TEXT
) WITHOUT ROWID;
CREATE INDEX active_cancelled ON active (worker) WHERE cancel_reason IS NOT NULL;

-- Waits for other jobs: `remaining` of them have not arrived yet. `due_at`: not before this time, even then.
CREATE TABLE blocked (
    job_id     BLOB PRIMARY KEY,
    remaining  INTEGER NOT NULL,
    due_at     REAL
) WITHOUT ROWID;

-- member: when this job ends, it arrives at that join (a blocked job). arrival: it has; only the first counts.
CREATE TABLE member (
    job_id   BLOB NOT NULL,
    join_id  BLOB NOT NULL,
    PRIMARY KEY (job_id, join_id)
) WITHOUT ROWID;
CREATE INDEX member_by_join ON member (join_id);
CREATE TABLE arrival (
    join_id  BLOB NOT NULL,
    job_id   BLOB NOT NULL,
    PRIMARY KEY (join_id, job_id)
) WITHOUT ROWID;

-- Waits for something other than time, under a key; keeps its place in the queue where it had one.
CREATE TABLE parked (
    job_id     BLOB PRIMARY KEY,
    reason     TEXT NOT NULL,
    key        TEXT NOT NULL,
    tag        INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    losses     INTEGER NOT NULL,
    crashes    INTEGER NOT NULL,
    parked_at  REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX parked_by_key ON parked (reason, key, seq);

-- Slots of concurrency limits, taken in the claim's transaction.
CREATE TABLE slot (
    key     TEXT NOT NULL,
    job_id  BLOB NOT NULL UNIQUE,
    PRIMARY KEY (key, job_id)
) WITHOUT ROWID;

-- Ended well or cancelled; append-only until pruned.
CREATE TABLE done (
    job_id      BLOB PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('succeeded', 'cancelled')),
    token       INTEGER,
    attempt     INTEGER NOT NULL,
    worker      BLOB,
    started_at  REAL,
    ended_at    REAL NOT NULL,
    result      BLOB,
    reason      TEXT
) WITHOUT ROWID;
CREATE INDEX done_by_end ON done (state, ended_at);

-- The dead letters: kept until a person decides.
CREATE TABLE dead (
    job_id         BLOB PRIMARY KEY,
    token          INTEGER,
    attempt        INTEGER NOT NULL,
    worker         BLOB,
    started_at     REAL,
    ended_at       REAL NOT NULL,
    reason         TEXT NOT NULL,
    error_type     TEXT NOT NULL,
    error_message  TEXT NOT NULL,
    fingerprint    TEXT NOT NULL,
    words          TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX dead_by_error ON dead (error_type, ended_at);
CREATE INDEX dead_by_fingerprint ON dead (fingerprint, ended_at);

-- One row per run that did not succeed: why it ended, and hence why there was, or may be, another.
CREATE TABLE attempt (
    job_id         BLOB NOT NULL,
    token          INTEGER NOT NULL,
    number         INTEGER NOT NULL,
    cause          TEXT NOT NULL,
    error_type     TEXT,
    error_message  TEXT,
    traceback      TEXT,
    worker         BLOB,
    started_at     REAL,
    ended_at       REAL NOT NULL,
    PRIMARY KEY (job_id, token)
) WITHOUT ROWID;

-- The last report of a run; survives retries and the ending.
CREATE TABLE progress (
    job_id  BLOB PRIMARY KEY,
    done    REAL NOT NULL,
    total   REAL,
    stage   TEXT,
    at      REAL NOT NULL
) WITHOUT ROWID;

-- Not started by then: cancelled. Rows only for jobs that have a deadline and have not ended.
CREATE TABLE expiry (
    expires_at  REAL NOT NULL,
    job_id      BLOB NOT NULL UNIQUE,
    PRIMARY KEY (expires_at, job_id)
) WITHOUT ROWID;

-- One heartbeat per process, not per job.
CREATE TABLE worker (
    id           BLOB PRIMARY KEY,
    host         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    concurrency  INTEGER NOT NULL,
    queues       TEXT NOT NULL,
    started_at   REAL NOT NULL,
    lease_until  REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX worker_by_lease ON worker (lease_until);

-- One key, one job, within its window; outlives the job.
CREATE TABLE idempotency_key (
    tenant       TEXT NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  BLOB NOT NULL,
    job_id       BLOB NOT NULL,
    expires_at   REAL NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_key_by_end ON idempotency_key (expires_at);

-- What operators set. NULL: the default of whoever asks.
CREATE TABLE queue_setting (
    queue    TEXT PRIMARY KEY,
    paused   INTEGER NOT NULL DEFAULT 0,
    high     INTEGER,
    low      INTEGER,
    weight   REAL NOT NULL DEFAULT 1.0,
    weights  TEXT
) WITHOUT ROWID;

-- Ready jobs per queue, kept in the same transaction as `ready`, and the gate of backpressure.
CREATE TABLE depth (
    queue   TEXT PRIMARY KEY,
    ready   INTEGER NOT NULL,
    closed  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Numbers that only grow: `seq` orders the ready jobs, `token` fences the runs.
CREATE TABLE counter (
    name   TEXT PRIMARY KEY,
    value  INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counter (name, value) VALUES ('seq', 0), ('token', 0);
