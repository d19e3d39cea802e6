-- Settings of queues, what is known of their depth, and the gate of backpressure.

-- name: settings
SELECT coalesce(d.queue, s.queue), s.paused, s.high, s.low, coalesce(s.weight, 1), s.weights, s.high_age_s, s.low_age_s,
       s.draining, s.concurrency, s.retry_budget, s.bypass_priority
FROM holdfast.depth d FULL JOIN holdfast.queue_setting s ON s.queue = d.queue

-- name: setting
SELECT paused, high, low, weight, weights, high_age_s, low_age_s, draining, concurrency, retry_budget, bypass_priority
FROM holdfast.queue_setting WHERE queue = $1 FOR UPDATE

-- name: weighed
-- Those that may have lanes that come last.
SELECT queue, paused, high, low, weight, weights FROM holdfast.queue_setting WHERE weight = 0 OR weights IS NOT NULL

-- name: put
INSERT INTO holdfast.queue_setting (queue, paused, high, low, weight, weights, high_age_s, low_age_s, draining, concurrency,
                                    retry_budget, bypass_priority)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (queue) DO UPDATE SET paused = excluded.paused, high = excluded.high, low = excluded.low,
    weight = excluded.weight, weights = excluded.weights, high_age_s = excluded.high_age_s,
    low_age_s = excluded.low_age_s, draining = excluded.draining, concurrency = excluded.concurrency,
    retry_budget = excluded.retry_budget, bypass_priority = excluded.bypass_priority

-- name: meet
-- A queue is known from its first job on. Never inside a user's transaction: others would wait for it.
INSERT INTO holdfast.depth (queue) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING

-- name: survey
-- Folded and not yet folded, in one look; how many rows are not yet folded; and the age, where there are marks for it:
-- of the heads of all lanes (in a lane with tags that need not be the oldest of the lane), and of the first hundred that
-- wait at gates.
SELECT q.queue, coalesce(d.ready, 0) + coalesce(d.parked, 0) + coalesce(c.change, 0), coalesce(d.closed, false), s.high,
       s.low, c.changes, coalesce(d.tenanted, false), coalesce(s.draining, false),
       coalesce(d.parked, 0) + coalesce(c.parked, 0), s.high_age_s, s.low_age_s, CASE WHEN s.high_age_s IS NOT NULL THEN (
            SELECT extract(epoch FROM holdfast.clock() - min(h.since))::float8 FROM (
                SELECT l.entered_at AS since FROM generate_series(0, 9) AS p (priority)
                CROSS JOIN LATERAL (
                    SELECT r.entered_at FROM holdfast.ready r WHERE r.queue = q.queue AND r.priority = p.priority
                    ORDER BY r.tag, r.seq LIMIT 1) l
                UNION ALL SELECT holdfast.parked_since(q.queue)) h) END
FROM unnest($1::text[]) AS q (queue)
LEFT JOIN holdfast.depth d ON d.queue = q.queue
LEFT JOIN holdfast.queue_setting s ON s.queue = q.queue
CROSS JOIN LATERAL (
    SELECT sum(x.change + x.parked)::int8, count(*), sum(x.parked)::int8 FROM holdfast.depth_change x
    WHERE x.queue = q.queue
) AS c (change, changes, parked)

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
    RETURNING queue, change, parked
), folded AS (
    INSERT INTO holdfast.depth (queue, ready, parked)
    SELECT queue, sum(change), sum(parked) FROM gone GROUP BY queue ORDER BY queue
    ON CONFLICT (queue) DO UPDATE
        SET ready = holdfast.depth.ready + excluded.ready, parked = holdfast.depth.parked + excluded.parked
)
SELECT count(*) FROM gone

-- name: overview
-- `ready` is what the writers have counted; the others are counted here, by an index, up to a limit.
SELECT q.queue, coalesce(d.closed, false) AS closed, s.paused, s.high, s.low, coalesce(s.weight, 1) AS weight, s.weights,
       s.high_age_s, s.low_age_s, s.draining, s.concurrency, s.retry_budget, s.bypass_priority,
       greatest(0, coalesce(d.ready, 0) + c.change) AS ready,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast.timer x WHERE x.queue = q.queue LIMIT $1) n) AS scheduled,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast.blocked x WHERE x.queue = q.queue LIMIT $1) n) AS blocked,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast.parked x WHERE x.queue = q.queue LIMIT $1) n) AS parked,
       (SELECT count(*) FROM (SELECT 1 FROM holdfast.dead x WHERE x.queue = q.queue LIMIT $1) n) AS dead,
       coalesce(a.running, 0) AS running
FROM (SELECT queue FROM holdfast.depth UNION SELECT queue FROM holdfast.queue_setting
      UNION SELECT queue FROM holdfast.depth_change) q
LEFT JOIN holdfast.depth d ON d.queue = q.queue
LEFT JOIN holdfast.queue_setting s ON s.queue = q.queue
LEFT JOIN (SELECT queue, count(*) AS running FROM holdfast.active GROUP BY queue) a ON a.queue = q.queue
CROSS JOIN LATERAL (
    SELECT coalesce(sum(x.change), 0)::int8 FROM holdfast.depth_change x WHERE x.queue = q.queue) AS c (change)
ORDER BY q.queue

-- name: lanes
-- The head of each lane: how long it is, up to a limit, and who has waited longest there.
SELECT q.queue, p.priority, h.count, h.oldest
FROM unnest($2::text[]) AS q (queue) CROSS JOIN generate_series(0, 9) AS p (priority)
CROSS JOIN LATERAL (
    SELECT count(*), min(r.entered_at) FROM (
        SELECT entered_at FROM holdfast.ready WHERE queue = q.queue AND priority = p.priority
        ORDER BY tag, seq LIMIT $1) r
) AS h (count, oldest)
WHERE h.count > 0

-- name: rates
-- From the newest rows of each kind, found by an index: bounded work, however many there are. Where a kind has more of
-- them than that, all are counted from its oldest one on. Dead letters are few, and in the order of their ids.
WITH came AS MATERIALIZED (
    SELECT queue, created_at AS at FROM holdfast.job ORDER BY id DESC LIMIT $1
), succeeded AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM holdfast.done WHERE cancelled = false ORDER BY ended_at DESC LIMIT $1
), cancelled AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM holdfast.done WHERE cancelled = true ORDER BY ended_at DESC LIMIT $1
), dead AS MATERIALIZED (
    SELECT queue, started_at, ended_at AS at FROM holdfast.dead ORDER BY job_id DESC LIMIT $1
), since AS MATERIALIZED (
    SELECT greatest($2::timestamptz, (SELECT CASE WHEN count(*) = $1 THEN min(at) END FROM came),
                    (SELECT CASE WHEN count(*) = $1 THEN min(at) END FROM succeeded),
                    (SELECT CASE WHEN count(*) = $1 THEN min(at) END FROM cancelled)) AS at
), ended AS MATERIALIZED (
    SELECT (SELECT j.queue FROM holdfast.job j WHERE j.id = e.job_id) AS queue, e.started_at, e.at
    FROM (SELECT * FROM succeeded UNION ALL SELECT * FROM cancelled) e WHERE e.at >= (SELECT at FROM since)
    UNION ALL SELECT queue, started_at, at FROM dead WHERE at >= (SELECT at FROM since)
)
SELECT x.queue, count(*) FILTER (WHERE x.kind = 1), count(*) FILTER (WHERE x.kind = 2), count(*) FILTER (WHERE x.kind = 3),
       (SELECT at FROM since)
FROM (
    SELECT queue, 1 AS kind, at FROM came
    UNION ALL SELECT queue, 2, started_at FROM holdfast.active
    UNION ALL SELECT queue, 2, started_at FROM ended
    UNION ALL SELECT queue, 3, at FROM ended
) AS x (queue, kind, at)
WHERE x.at >= (SELECT at FROM since) AND x.queue IS NOT NULL
GROUP BY x.queue

-- name: workers
SELECT w.id, w.host, w.pid, w.concurrency, w.queues, w.started_at, w.lease_until, w.lag_s,
       (SELECT count(*) FROM holdfast.active a WHERE a.worker = w.id)
FROM holdfast.worker w ORDER BY w.started_at, w.id
