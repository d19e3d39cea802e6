-- register, renew, reap, hand back: one lease per process. A renewal never makes a row anew.

-- name: register
INSERT INTO worker (id, host, pid, concurrency, queues, started_at, lease_until) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: renew
-- Whoever has not been declared dead may go on, however late it is: only reaping takes its jobs away, and it
-- removes this row in the same transaction. So a clock that jumped forward costs nobody a lease.
UPDATE worker SET lease_until = ? WHERE id = ?

-- name: lag
UPDATE worker SET lag_s = ? WHERE id = ?

-- name: held
SELECT job_id, token FROM active WHERE worker = ? AND started_at <= ?

-- name: cancel_requests
SELECT job_id, token, cancel_reason FROM active WHERE worker = ? AND cancel_reason IS NOT NULL

-- name: expired
-- Reap deletes the worker first, checking the expiry again; only then do its leases move.
DELETE FROM worker WHERE id IN (SELECT id FROM worker WHERE lease_until <= ? LIMIT ?) RETURNING id

-- name: remove
DELETE FROM worker WHERE id = ?

-- name: leases_of
DELETE FROM active WHERE worker = ?
RETURNING job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at, cancel_reason

-- name: leases_without_worker
DELETE FROM active WHERE job_id IN (
    SELECT a.job_id FROM active a LEFT JOIN worker w ON w.id = a.worker WHERE w.id IS NULL LIMIT ?)
RETURNING job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at, cancel_reason

-- name: parked_under
SELECT p.seq, p.job_id, p.tag, p.attempt, p.losses, p.crashes, p.queue, j.queue, j.priority
FROM parked p LEFT JOIN job j ON j.id = p.job_id WHERE p.reason = ? AND p.key = ?

-- name: unpark
DELETE FROM parked WHERE job_id = ?
