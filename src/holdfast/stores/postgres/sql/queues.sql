-- Settings of queues, what is known of their depth, and the gate of backpressure.

-- name: settings
SELECT coalesce(d.queue, s.queue), s.paused, s.high, s.low, s.weight, s.weights
FROM holdfast.depth d FULL JOIN holdfast.queue_setting s ON s.queue = d.queue

-- name: setting
SELECT paused, high, low, weight, weights FROM holdfast.queue_setting WHERE queue = $1 FOR UPDATE

-- name: set
INSERT INTO holdfast.queue_setting (queue, paused, high, low, weight, weights) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused, high = excluded.high, low = excluded.low,
    weight = excluded.weight, weights = excluded.weights

-- name: meet
-- A queue is known from its first job on. Never inside a user's transaction: others would wait for it.
INSERT INTO holdfast.depth (queue) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING

-- name: depths
-- Folded and not yet folded, in one look; how many rows are not yet folded.
SELECT q.queue, coalesce(d.ready, 0) + coalesce(c.change, 0), coalesce(d.closed, false), s.high, s.low, c.changes
FROM unnest($1::text[]) AS q (queue)
LEFT JOIN holdfast.depth d ON d.queue = q.queue
LEFT JOIN holdfast.queue_setting s ON s.queue = q.queue
CROSS JOIN LATERAL (
    SELECT sum(x.change)::int8, count(*) FROM holdfast.depth_change x WHERE x.queue = q.queue) AS c (change, changes)

-- name: closed
SELECT queue FROM holdfast.depth WHERE closed AND queue = ANY ($1)

-- name: set_gates
-- In the order in which they are folded: whoever changes several never waits in a circle.
INSERT INTO holdfast.depth (queue, closed) SELECT * FROM unnest($1::text[], $2::bool[]) AS g (queue, closed) ORDER BY queue
ON CONFLICT (queue) DO UPDATE SET closed = excluded.closed

-- name: fold
-- Several may fold at once: each takes other rows, and adds only what it took.
WITH gone AS (
    DELETE FROM holdfast.depth_change WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM holdfast.depth_change LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING queue, change
), folded AS (
    INSERT INTO holdfast.depth (queue, ready) SELECT queue, sum(change) FROM gone GROUP BY queue ORDER BY queue
    ON CONFLICT (queue) DO UPDATE SET ready = holdfast.depth.ready + excluded.ready
)
SELECT count(*) FROM gone

-- name: ready
SELECT queue, priority, count(*), min(entered_at) FROM holdfast.ready GROUP BY queue, priority

-- name: gates
SELECT queue, closed FROM holdfast.depth

-- name: others
SELECT j.queue, 'scheduled', count(*) FROM holdfast.timer t JOIN holdfast.job j ON j.id = t.job_id GROUP BY j.queue
UNION ALL
SELECT j.queue, 'blocked', count(*) FROM holdfast.blocked b JOIN holdfast.job j ON j.id = b.job_id GROUP BY j.queue
UNION ALL
SELECT j.queue, 'parked', count(*) FROM holdfast.parked p JOIN holdfast.job j ON j.id = p.job_id GROUP BY j.queue
UNION ALL SELECT queue, 'running', count(*) FROM holdfast.active GROUP BY queue
UNION ALL
SELECT j.queue, 'dead', count(*) FROM holdfast.dead d JOIN holdfast.job j ON j.id = d.job_id GROUP BY j.queue

-- name: workers
SELECT w.id, w.host, w.pid, w.concurrency, w.queues, w.started_at, w.lease_until,
       (SELECT count(*) FROM holdfast.active a WHERE a.worker = w.id)
FROM holdfast.worker w ORDER BY w.started_at, w.id
