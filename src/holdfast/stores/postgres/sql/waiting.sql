-- promote, expire, cancel, purge: the ways out of waiting other than a claim. What somebody else has in hand is
-- passed over; it has moved, or comes back.

-- name: promote
-- One whose body is gone comes along: its claim will tell.
WITH due AS (
    DELETE FROM holdfast.timer WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM holdfast.timer WHERE due_at <= $1 ORDER BY due_at, job_id LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING *
)
SELECT t.job_id, coalesce(j.queue, nullif(t.queue, ''), 'default'), coalesce(j.priority, 5), t.attempt, t.losses,
       t.crashes, t.attached
FROM due t LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[t.job_id]) ORDER BY t.due_at, t.job_id

-- name: next_due
SELECT extract(epoch FROM due_at - $1::timestamptz)::float8 FROM holdfast.timer ORDER BY due_at LIMIT 1

-- name: overdue
-- A run that has started may end; the deadline comes back into force if its job has to wait again.
SELECT job_id FROM holdfast.expiry e
WHERE expires_at <= $1 AND NOT EXISTS (SELECT 1 FROM holdfast.active a WHERE a.job_id = e.job_id)
ORDER BY expires_at LIMIT $2

-- name: drop_stale_expiry
DELETE FROM holdfast.expiry e WHERE job_id = ANY ($1)
    AND EXISTS (SELECT 1 FROM holdfast.done d WHERE d.job_id = e.job_id)

-- name: leave_all
-- Out of whatever they wait in; those that were found, and which of the counted states they were in. With a queue: those
-- that are still there.
WITH r AS (DELETE FROM holdfast.ready WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.ready WHERE job_id = ANY ($1) AND ($2::text IS NULL OR queue = $2)
               FOR UPDATE SKIP LOCKED))
           RETURNING job_id, attempt, queue),
     t AS (DELETE FROM holdfast.timer WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.timer WHERE job_id = ANY ($1) AND ($2::text IS NULL OR queue = $2)
               FOR UPDATE SKIP LOCKED))
           RETURNING job_id, attempt),
     p AS (DELETE FROM holdfast.parked WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.parked WHERE job_id = ANY ($1) AND ($2::text IS NULL OR queue = $2)
               FOR UPDATE SKIP LOCKED))
           RETURNING job_id, attempt, queue, reason, key, priority, tenant, line),
     b AS (DELETE FROM holdfast.blocked WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.blocked WHERE job_id = ANY ($1) AND ($2::text IS NULL OR queue = $2)
               FOR UPDATE SKIP LOCKED))
           RETURNING job_id)
SELECT job_id, attempt, queue, 'ready' AS state, NULL AS reason, NULL AS key, NULL::int2 AS priority, NULL AS tenant,
       0::int8 AS line FROM r
UNION ALL SELECT job_id, attempt, NULL, NULL, NULL, NULL, NULL, NULL, 0 FROM t
UNION ALL SELECT job_id, attempt, queue, 'parked', reason, key, priority, tenant, line FROM p
UNION ALL SELECT job_id, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0 FROM b

-- name: flag_active
UPDATE holdfast.active SET cancel_reason = coalesce(cancel_reason, $2) WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.active WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED))
RETURNING job_id

-- name: ended
-- Those that have ended, or are not there at all.
SELECT a.id, j.id IS NOT NULL FROM unnest($1::uuid[]) AS a (id) LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[a.id])
WHERE j.id IS NULL OR EXISTS (SELECT 1 FROM holdfast.done d WHERE d.job_id = a.id)
    OR EXISTS (SELECT 1 FROM holdfast.dead d WHERE d.job_id = a.id)

-- name: waiting_in_queue
SELECT job_id FROM holdfast.ready WHERE queue = $1
UNION ALL SELECT job_id FROM holdfast.timer WHERE queue = $1
UNION ALL SELECT job_id FROM holdfast.parked WHERE queue = $1
UNION ALL SELECT job_id FROM holdfast.blocked WHERE queue = $1
LIMIT $2
