-- claim_jobs: `ready` → `active` under a valid lease; the worker's row is checked in the same transaction.

-- name: lease_is_valid
SELECT 1 FROM worker WHERE id = ? AND lease_until > ?

-- name: paused
SELECT queue FROM queue_setting WHERE paused

-- name: lonely_lanes
SELECT DISTINCT queue, priority FROM ready WHERE losses >= 2

-- name: pick
-- The head of one lane, in the order of the primary key; jobs that must run alone are passed over.
SELECT r.seq, r.tag, r.job_id, r.attempt, r.losses, r.crashes,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.limit_key, j.limit_size
FROM ready r LEFT JOIN job j ON j.id = r.job_id
WHERE r.queue = ? AND r.priority = ? AND r.losses < 2
ORDER BY r.tag, r.seq LIMIT ?

-- name: pick_lonely
SELECT r.seq, r.tag, r.job_id, r.attempt, r.losses, r.crashes,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.limit_key, j.limit_size
FROM ready r LEFT JOIN job j ON j.id = r.job_id
WHERE r.queue = ? AND r.priority = ? AND r.losses >= 2
ORDER BY r.tag, r.seq LIMIT ?

-- name: leave_ready
DELETE FROM ready WHERE queue = ? AND priority = ? AND tag = ? AND seq = ?

-- name: lease
INSERT INTO active (job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: park
INSERT INTO parked (job_id, reason, key, tag, seq, attempt, losses, crashes, parked_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
