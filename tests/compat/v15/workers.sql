-- register, renew, reap, hand back: one lease per process. A renewal never makes a row anew.

-- name: register
INSERT INTO holdfast.worker (id, host, pid, concurrency, queues, started_at, lease_until)
SELECT $1, $2, $3, $4, $5, now, now + $6::float8 * interval '1 second' FROM holdfast.clock() AS now

-- name: renew
-- Whoever has not been declared dead may go on, however late it is: only reaping takes its jobs away, and it
-- removes this row in the same transaction. So a clock that jumped forward costs nobody a lease.
-- The leases older than asked for come with it; one row at least says that the worker is there.
WITH alive AS (
    UPDATE holdfast.worker SET lease_until = holdfast.clock() + $2::float8 * interval '1 second' WHERE id = $1
    RETURNING holdfast.clock() AS now
)
SELECT extract(epoch FROM alive.now)::float8, a.job_id, a.token
FROM alive LEFT JOIN holdfast.active a ON a.worker = $1 AND a.started_at <= alive.now - $3::float8 * interval '1 second'

-- name: lag
UPDATE holdfast.worker SET lag_s = $2 WHERE id = $1

-- name: cancel_requests
SELECT job_id, token, cancel_reason FROM holdfast.active WHERE worker = $1 AND cancel_reason IS NOT NULL

-- name: expired
-- Reap deletes the worker first, checking the expiry again; only then, in another statement, do its leases move.
-- As an array the limited choice is made once; as a subquery of IN a plan may make it again for every row.
DELETE FROM holdfast.worker WHERE id = ANY (ARRAY(
    SELECT id FROM holdfast.worker WHERE lease_until <= $1 ORDER BY lease_until LIMIT $2 FOR UPDATE SKIP LOCKED))
    AND lease_until <= $1
RETURNING id

-- name: remove
DELETE FROM holdfast.worker WHERE id = $1

-- name: leases_of
-- A row that is locked belongs to a run that is just ending by itself, perhaps in a transaction of its user's; if
-- it does not, the next look at leases without a worker finds it.
DELETE FROM holdfast.active WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.active WHERE worker = ANY ($1) FOR UPDATE SKIP LOCKED))
RETURNING job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at, cancel_reason,
          attached

-- name: leases_without_worker
DELETE FROM holdfast.active WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM holdfast.active a
    WHERE NOT EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.id = a.worker) LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at, cancel_reason,
          attached

-- name: lift
-- One whose body is gone comes along: its claim will tell.
WITH gone AS (
    DELETE FROM holdfast.parked WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM holdfast.parked WHERE reason = $1 AND key = ANY ($2) ORDER BY seq LIMIT $3
        FOR UPDATE SKIP LOCKED))
    RETURNING *
)
SELECT p.job_id, coalesce(j.queue, nullif(p.queue, ''), 'default'), coalesce(j.priority, 5), p.attempt, p.losses,
       p.crashes, p.attached, p.tag, p.seq, p.queue AS counted
FROM gone p LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[p.job_id])
