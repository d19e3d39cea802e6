-- Those who wait at a gate go by turns of their lanes (holdfast/core/turns.py), and the tenants of a lane by tags that their
-- jobs bring (holdfast/core/tenancy.py: `line_tag`), each of them by the places of its jobs. 0: there are no tenants.
ALTER TABLE parked ADD COLUMN priority INTEGER NOT NULL DEFAULT 5;
ALTER TABLE parked ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE parked ADD COLUMN line INTEGER NOT NULL DEFAULT 0;
UPDATE parked SET (priority, tenant) = (SELECT j.priority, j.tenant FROM job j WHERE j.id = parked.job_id)
WHERE EXISTS (SELECT 1 FROM job j WHERE j.id = parked.job_id);
CREATE INDEX parked_in_line ON parked (reason, key, queue, priority, line, seq);
CREATE INDEX parked_by_tenant ON parked (reason, key, queue, priority, tenant, seq) WHERE line > 0;
CREATE INDEX parked_last ON parked (reason, key, queue, priority, tenant, line) WHERE line > 0;

-- When a turn at a rate was kept for one who was let go.
ALTER TABLE slot ADD COLUMN kept_at REAL;

-- What is known of the lanes of a gate from one look to the next, where anything has to be; and, as a lane without a name,
-- the gate's clock.
CREATE TABLE turn (
    kind      TEXT NOT NULL,
    key       TEXT NOT NULL,
    queue     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    due       REAL,
    reached   INTEGER NOT NULL,
    PRIMARY KEY (kind, key, queue, priority)
) WITHOUT ROWID;
