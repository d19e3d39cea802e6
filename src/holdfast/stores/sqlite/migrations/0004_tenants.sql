-- Fairness between tenants: tags by which a lane is ordered (holdfast/core/tenancy.py), and age as a watermark.

-- Somebody has named a tenant in this queue: from then on all of its jobs get tags.
ALTER TABLE depth ADD COLUMN tenanted INTEGER NOT NULL DEFAULT 0;

-- The last tag of each tenant in a lane, and the job that got it. Forgotten once the lane has come that far.
CREATE TABLE tenant_tag (
    queue     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    tag       INTEGER NOT NULL,
    job_id    BLOB NOT NULL,
    PRIMARY KEY (queue, priority, tenant)
) WITHOUT ROWID;

-- How far a lane has come: the largest tag that was claimed.
CREATE TABLE lane_reached (
    queue     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    tag       INTEGER NOT NULL,
    PRIMARY KEY (queue, priority)
) WITHOUT ROWID;

-- What operators set for a tenant.
CREATE TABLE tenant_setting (
    tenant  TEXT PRIMARY KEY,
    weight  REAL NOT NULL
) WITHOUT ROWID;

-- Beside the watermarks on depth: those on the age of the oldest ready job, in seconds.
ALTER TABLE queue_setting ADD COLUMN high_age_s REAL;
ALTER TABLE queue_setting ADD COLUMN low_age_s REAL;
