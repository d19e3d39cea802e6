-- claim_jobs: `ready` → `active` under a valid lease; the worker's row is checked in the same transaction.

-- name: lease_is_valid
SELECT 1 FROM worker WHERE id = ? AND lease_until > ?

-- name: said
-- What operators have said that may keep jobs from running: paused queues, and the rules of flow control.
SELECT 'queue', queue, NULL, NULL, NULL, NULL FROM queue_setting WHERE paused
UNION ALL SELECT what, name, size, count, per_s, burst FROM rule

-- name: lonely_lanes
SELECT DISTINCT queue, priority FROM ready WHERE losses >= 2

-- name: pick
-- The head of one lane, in the order of the primary key; jobs that must run alone are passed over.
SELECT r.seq, r.tag, r.job_id, r.attempt, r.losses, r.crashes,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.gates,
       CASE WHEN j.gates IS NOT NULL THEN EXISTS (SELECT 1 FROM slot s WHERE s.job_id = r.job_id) END
FROM ready r LEFT JOIN job j ON j.id = r.job_id
WHERE r.queue = ? AND r.priority = ? AND r.losses < 2
ORDER BY r.tag, r.seq LIMIT ?

-- name: pick_lonely
SELECT r.seq, r.tag, r.job_id, r.attempt, r.losses, r.crashes,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.gates,
       CASE WHEN j.gates IS NOT NULL THEN EXISTS (SELECT 1 FROM slot s WHERE s.job_id = r.job_id) END
FROM ready r LEFT JOIN job j ON j.id = r.job_id
WHERE r.queue = ? AND r.priority = ? AND r.losses >= 2
ORDER BY r.tag, r.seq LIMIT ?

-- name: pick_place
SELECT r.seq, r.tag, r.job_id, r.attempt, r.losses, r.crashes,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.gates,
       CASE WHEN j.gates IS NOT NULL THEN EXISTS (SELECT 1 FROM slot s WHERE s.job_id = r.job_id) END
FROM ready r LEFT JOIN job j ON j.id = r.job_id
WHERE r.queue = ? AND r.priority = ? AND r.tag = ? AND r.seq = ?

-- name: any_parked
SELECT 1 FROM parked WHERE reason = ? AND key = ? LIMIT 1

-- name: parked_as_unknown
-- The first of one task. Among more than these there may be one in a lane that is asked for: it is unparked in time,
-- as are those that must run alone, and those whose bodies are gone.
SELECT p.seq, p.job_id, p.tag, p.attempt, p.losses, p.crashes, j.queue, j.priority
FROM (SELECT * FROM parked WHERE reason = ? AND key = ? ORDER BY seq LIMIT 100) p JOIN job j ON j.id = p.job_id
WHERE p.losses < 2

-- name: leave_parked
DELETE FROM parked WHERE job_id = ?

-- name: leave_ready
DELETE FROM ready WHERE queue = ? AND priority = ? AND tag = ? AND seq = ?

-- name: lease
INSERT INTO active (job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
