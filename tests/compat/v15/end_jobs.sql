-- end_jobs: the one routine of every ending. Fenced callers have removed the live row in the same transaction.

-- name: done
INSERT INTO holdfast.done (job_id, cancelled, token, attempt, worker, started_at, result, reason, ended_at)
SELECT *, $9 FROM unnest($1::uuid[], $2::bool[], $3::int8[], $4::int4[], $5::uuid[], $6::timestamptz[], $7::bytea[],
                         $8::text[])

-- name: dead
INSERT INTO holdfast.dead (job_id, token, attempt, worker, started_at, reason, error_type, error_message, fingerprint,
                           words, ended_at, queue, task, tenant)
SELECT d.job_id, d.token, d.attempt, d.worker, d.started_at, d.reason, d.error_type, d.error_message, d.fingerprint,
       string_to_array(d.words, ' '), $11, coalesce(j.queue, ''), coalesce(j.task, ''), coalesce(j.tenant, '')
FROM unnest($1::uuid[], $2::int8[], $3::int4[], $4::uuid[], $5::timestamptz[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::text[])
    AS d (job_id, token, attempt, worker, started_at, reason, error_type, error_message, fingerprint, words)
LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[d.job_id])

-- name: attached
-- Whether anything in the store can be attached to an ending at all; usually not, and then the rest is skipped.
SELECT EXISTS (SELECT 1 FROM holdfast.expiry), EXISTS (SELECT 1 FROM holdfast.slot),
       EXISTS (SELECT 1 FROM holdfast.member)

-- name: drop_expiry
DELETE FROM holdfast.expiry WHERE job_id = ANY ($1)

-- name: arrive
-- Only the first insertion counts: a replayed member arrives once.
INSERT INTO holdfast.arrival (join_id, job_id)
SELECT join_id, job_id FROM holdfast.member WHERE job_id = ANY ($1) ORDER BY join_id, job_id
ON CONFLICT DO NOTHING RETURNING join_id

-- name: lock_joins
SELECT job_id FROM holdfast.blocked WHERE job_id = ANY ($1) ORDER BY job_id FOR UPDATE

-- name: subtract
UPDATE holdfast.blocked b SET remaining = b.remaining - t.count
FROM unnest($1::uuid[], $2::int4[]) AS t (job_id, count) WHERE b.job_id = ANY (ARRAY[t.job_id])
RETURNING b.job_id, b.remaining

-- name: unblock
-- One whose body is gone comes along: its claim will tell.
WITH gone AS (DELETE FROM holdfast.blocked WHERE job_id = ANY ($1) RETURNING job_id, due_at, attached, queue)
SELECT b.job_id, b.due_at, b.attached, coalesce(j.queue, b.queue) AS queue, coalesce(j.priority, 5) AS priority
FROM gone b LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[b.job_id])

-- name: timers
INSERT INTO holdfast.timer (job_id, due_at, attached, attempt, losses, crashes, queue)
SELECT t.*, 0, 0, 0, coalesce(j.queue, '')
FROM unnest($1::uuid[], $2::timestamptz[], $3::bool[]) AS t (job_id, due_at, attached)
LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[t.job_id])

-- name: forget_members
-- Kept until the join is released: a dead member that is replayed must find that it has arrived.
DELETE FROM holdfast.member WHERE join_id = ANY ($1)

-- name: forget_arrivals
DELETE FROM holdfast.arrival WHERE join_id = ANY ($1)

-- name: drop_slots
-- In the order in which whoever makes their gate holds them.
DELETE FROM holdfast.slot WHERE ctid = ANY (ARRAY(SELECT ctid FROM holdfast.slot WHERE job_id = ANY ($1)))
RETURNING kind, key
