-- Settings of queues and what is known of their depth.

-- name: settings
SELECT d.queue, s.paused, s.high, s.low, coalesce(s.weight, 1.0), s.weights, s.high_age_s, s.low_age_s, s.draining
FROM depth d LEFT JOIN queue_setting s USING (queue)
UNION
SELECT s.queue, s.paused, s.high, s.low, s.weight, s.weights, s.high_age_s, s.low_age_s, s.draining FROM queue_setting s

-- name: set
INSERT OR REPLACE INTO queue_setting (queue, paused, high, low, weight, weights, high_age_s, low_age_s, draining)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

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

-- name: workers
SELECT w.id, w.host, w.pid, w.concurrency, w.queues, w.started_at, w.lease_until, w.lag_s,
       (SELECT count(*) FROM active a WHERE a.worker = w.id)
FROM worker w ORDER BY w.started_at
