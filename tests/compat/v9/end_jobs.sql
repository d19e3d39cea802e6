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
LEFT JOIN holdfast.job j ON j.id = d.job_id

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
FROM unnest($1::uuid[], $2::int4[]) AS t (job_id, count) WHERE b.job_id = t.job_id RETURNING b.job_id, b.remaining

-- name: unblock
-- One whose body is gone comes along: its claim will tell.
WITH gone AS (DELETE FROM holdfast.blocked WHERE job_id = ANY ($1) RETURNING job_id, due_at, attached, queue)
SELECT b.job_id, b.due_at, b.attached, coalesce(j.queue, b.queue) AS queue, coalesce(j.priority, 5) AS priority
FROM gone b LEFT JOIN holdfast.job j ON j.id = b.job_id

-- name: timers
INSERT INTO holdfast.timer (job_id, due_at, attached, attempt, losses, crashes, queue)
SELECT t.*, 0, 0, 0, coalesce(j.queue, '')
FROM unnest($1::uuid[], $2::timestamptz[], $3::bool[]) AS t (job_id, due_at, attached)
LEFT JOIN holdfast.job j ON j.id = t.job_id

-- name: forget_members
-- Kept until the join is released: a dead member that is replayed must find that it has arrived.
DELETE FROM holdfast.member WHERE join_id = ANY ($1)

-- name: forget_arrivals
DELETE FROM holdfast.arrival WHERE join_id = ANY ($1)

-- name: free_slots
DELETE FROM holdfast.slot WHERE job_id = ANY ($1) RETURNING key

-- name: lock_limit
-- Taking, freeing and waiting for the slots of a limit happen one after the other, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('holdfast.slot ' || $1, 0))

-- name: try_lock_limit
-- The same for whoever does not wait.
SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast.slot ' || $1, 0))

-- name: take_slots
-- For as many of these jobs, in this order, as there is room for; those that have one keep it. Answers who has one.
WITH held AS (SELECT count(*) AS slots FROM holdfast.slot WHERE key = $1),
     asked AS (
        SELECT a.job_id, a.size, EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.job_id = a.job_id) AS has, a.n
        FROM unnest($2::uuid[], $3::int4[]) WITH ORDINALITY AS a (job_id, size, n)
     ), ranked AS (SELECT job_id, size, row_number() OVER (ORDER BY n) AS rank FROM asked WHERE NOT has),
     taken AS (
        INSERT INTO holdfast.slot (job_id, key)
        SELECT r.job_id, $1 FROM ranked r, held h WHERE h.slots + r.rank <= r.size RETURNING job_id
     )
SELECT job_id FROM taken UNION ALL SELECT job_id FROM asked WHERE has

-- name: oldest_waiters
-- The jobs that have waited longest for a slot of this limit, held here until we commit.
-- Served: claimed from by somebody, or by nobody because there is no worker at all. Without a size: the body is gone.
SELECT p.job_id, coalesce(j.queue, p.queue) AS queue, coalesce(j.priority, 5) AS priority, p.attempt, p.losses,
       p.crashes, p.attached, p.tag, p.seq, j.limit_size, (SELECT count(*) FROM holdfast.slot WHERE key = $1) AS held,
       NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = p.queue AND s.paused)
       AND (NOT EXISTS (SELECT 1 FROM holdfast.worker)
            OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}' OR p.queue = ANY (w.queues))) AS served
FROM holdfast.parked p LEFT JOIN holdfast.job j ON j.id = p.job_id
WHERE p.reason = 'limit' AND p.key = $1 ORDER BY p.seq LIMIT $2 FOR UPDATE OF p SKIP LOCKED

-- name: unpark
DELETE FROM holdfast.parked WHERE job_id = ANY ($1)
