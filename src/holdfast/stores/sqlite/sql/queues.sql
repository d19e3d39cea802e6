-- Settings of queues and what is known of their depth.

-- name: settings
SELECT d.queue, s.paused, s.high, s.low, coalesce(s.weight, 1.0), s.weights, s.high_age_s, s.low_age_s, s.draining,
       s.concurrency, s.retry_budget, s.bypass_priority
FROM depth d LEFT JOIN queue_setting s USING (queue)
UNION
SELECT s.queue, s.paused, s.high, s.low, s.weight, s.weights, s.high_age_s, s.low_age_s, s.draining,
       s.concurrency, s.retry_budget, s.bypass_priority
FROM queue_setting s

-- name: set
INSERT OR REPLACE INTO queue_setting (queue, paused, high, low, weight, weights, high_age_s, low_age_s, draining,
                                      concurrency, retry_budget, bypass_priority)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: depths
SELECT queue, priority, count(*), min(entered_at) FROM ready GROUP BY queue, priority

-- name: closed
SELECT queue, closed FROM depth

-- name: others
SELECT j.queue, 'scheduled', count(*) FROM timer t JOIN job j ON j.id = t.job_id GROUP BY j.queue
UNION ALL SELECT j.queue, 'blocked', count(*) FROM blocked b JOIN job j ON j.id = b.job_id GROUP BY j.queue
UNION ALL SELECT queue, 'parked', count(*) FROM parked GROUP BY queue
UNION ALL SELECT queue, 'running', count(*) FROM active GROUP BY queue
UNION ALL SELECT j.queue, 'dead', count(*) FROM dead d JOIN job j ON j.id = d.job_id GROUP BY j.queue

-- name: rates
-- From the newest rows of each kind, found by an index: bounded work, however many there are. Where a kind has more of
-- them than that, all are counted from its oldest one on. Dead letters are few, and in the order of their ids.
WITH came AS MATERIALIZED (
    SELECT queue, created_at AS at FROM job ORDER BY id DESC LIMIT :most
), succeeded AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM done WHERE state = 'succeeded' ORDER BY ended_at DESC LIMIT :most
), cancelled AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM done WHERE state = 'cancelled' ORDER BY ended_at DESC LIMIT :most
), dead_letters AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM dead ORDER BY job_id DESC LIMIT :most
), since AS MATERIALIZED (
    SELECT max(:since, coalesce((SELECT CASE WHEN count(*) = :most THEN min(at) END FROM came), :since),
               coalesce((SELECT CASE WHEN count(*) = :most THEN min(at) END FROM succeeded), :since),
               coalesce((SELECT CASE WHEN count(*) = :most THEN min(at) END FROM cancelled), :since)) AS at
), ended AS MATERIALIZED (
    SELECT (SELECT j.queue FROM job j WHERE j.id = e.job_id) AS queue, e.started_at, e.at
    FROM (SELECT * FROM succeeded UNION ALL SELECT * FROM cancelled UNION ALL SELECT * FROM dead_letters) e
    WHERE e.at >= (SELECT at FROM since)
)
SELECT x.queue, sum(x.kind = 1), sum(x.kind = 2), sum(x.kind = 3), (SELECT at FROM since)
FROM (
    SELECT queue, 1 AS kind, at FROM came
    UNION ALL SELECT queue, 2, started_at FROM active
    UNION ALL SELECT queue, 2, started_at FROM ended
    UNION ALL SELECT queue, 3, at FROM ended
) x
WHERE x.at >= (SELECT at FROM since) AND x.queue IS NOT NULL
GROUP BY x.queue

-- name: workers
SELECT w.id, w.host, w.pid, w.concurrency, w.queues, w.started_at, w.lease_until, w.lag_s,
       (SELECT count(*) FROM active a WHERE a.worker = w.id)
FROM worker w ORDER BY w.started_at
