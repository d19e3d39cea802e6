-- What only code and settings could say, operators can say as well: options of queues, figures of breakers, and routes.
-- NULL: nothing is said, and what each process is configured with holds.
ALTER TABLE queue_setting ADD COLUMN concurrency INTEGER;
ALTER TABLE queue_setting ADD COLUMN retry_budget REAL;
ALTER TABLE queue_setting ADD COLUMN bypass_priority INTEGER;

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
