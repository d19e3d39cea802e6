-- Settings of queues and what is known of their depth. What may be text that nobody can read is asked for as bytes.

-- name: settings
SELECT CAST(n.queue AS BLOB), s.paused, s.high, s.low, coalesce(s.weight, 1.0), CAST(s.weights AS BLOB),
       s.high_age_s, s.low_age_s, s.draining,
       CASE typeof(o.concurrency) WHEN 'text' THEN CAST(o.concurrency AS BLOB) ELSE o.concurrency END,
       CASE typeof(o.retry_budget) WHEN 'text' THEN CAST(o.retry_budget AS BLOB) ELSE o.retry_budget END,
       CASE typeof(o.bypass_priority) WHEN 'text' THEN CAST(o.bypass_priority AS BLOB) ELSE o.bypass_priority END
FROM (SELECT queue FROM depth UNION SELECT queue FROM queue_setting UNION SELECT queue FROM queue_option) n
LEFT JOIN queue_setting s ON s.queue = n.queue LEFT JOIN queue_option o ON o.queue = n.queue
WHERE typeof(n.queue) = 'text'

-- name: set
INSERT OR REPLACE INTO queue_setting (queue, paused, high, low, weight, weights, high_age_s, low_age_s, draining)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: set_options
INSERT OR REPLACE INTO queue_option (queue, concurrency, retry_budget, bypass_priority) VALUES (?, ?, ?, ?)

-- name: drop_options
DELETE FROM queue_option WHERE queue = ?

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
