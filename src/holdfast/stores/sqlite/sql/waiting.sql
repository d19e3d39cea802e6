-- promote, expire, cancel, purge: the ways out of waiting other than a claim.

-- name: due
DELETE FROM timer WHERE job_id IN (SELECT job_id FROM timer WHERE due_at <= ? ORDER BY due_at LIMIT ?)
RETURNING due_at, job_id, attempt, losses, crashes

-- name: next_due
SELECT min(due_at) FROM timer

-- name: lane
SELECT queue, priority FROM job WHERE id = ?

-- name: overdue
-- A run that has started may end; the deadline comes back into force if its job has to wait again.
SELECT job_id FROM expiry e WHERE expires_at <= ? AND NOT EXISTS (SELECT 1 FROM active a WHERE a.job_id = e.job_id)
ORDER BY expires_at LIMIT ?

-- name: leave_ready
DELETE FROM ready WHERE job_id = ? RETURNING attempt, queue

-- name: leave_timer
DELETE FROM timer WHERE job_id = ? RETURNING attempt

-- name: leave_parked
DELETE FROM parked WHERE job_id = ? RETURNING attempt, queue, reason, key, priority, tenant, line

-- name: leave_blocked
DELETE FROM blocked WHERE job_id = ? RETURNING 0

-- name: flag_active
UPDATE active SET cancel_reason = coalesce(cancel_reason, ?) WHERE job_id = ?

-- name: exists
SELECT 1 FROM job WHERE id = ?

-- name: waiting_in_queue
SELECT job_id FROM ready WHERE queue = :queue
UNION ALL SELECT t.job_id FROM timer t JOIN job j ON j.id = t.job_id WHERE j.queue = :queue
UNION ALL SELECT job_id FROM parked WHERE queue = :queue
UNION ALL SELECT b.job_id FROM blocked b JOIN job j ON j.id = b.job_id WHERE j.queue = :queue
LIMIT :limit
