-- What only code and settings could say, operators can say as well: options of queues, figures of breakers, and routes.
-- NULL: nothing is said, and what each process is configured with holds.
-- A table of its own: a program of an earlier version that is still running replaces whole rows of `queue_setting`.
CREATE TABLE queue_option (
    queue            TEXT PRIMARY KEY,
    concurrency      INTEGER,
    retry_budget     REAL,
    bypass_priority  INTEGER
) WITHOUT ROWID;

CREATE TABLE breaker_setting (
    name        TEXT PRIMARY KEY,
    failures    INTEGER,
    window_s    REAL,
    open_for_s  REAL
) WITHOUT ROWID;

-- Where jobs go by the names of their tasks; patterns as in holdfast/core/routing.py.
CREATE TABLE route (
    pattern   TEXT PRIMARY KEY,
    queue     TEXT,
    priority  INTEGER
) WITHOUT ROWID;
