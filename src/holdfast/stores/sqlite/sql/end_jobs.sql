-- end_jobs: the one routine of every ending. Fenced callers have removed the live row in the same transaction.

-- name: done
INSERT INTO done (job_id, state, token, attempt, worker, started_at, ended_at, result, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: dead
INSERT INTO dead (job_id, token, attempt, worker, started_at, ended_at, reason, error_type, error_message, fingerprint,
                  words)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: attached
-- Whether anything in the store can be attached to an ending at all; usually not, and then the rest is skipped.
SELECT EXISTS (SELECT 1 FROM expiry), EXISTS (SELECT 1 FROM slot), EXISTS (SELECT 1 FROM member)

-- name: drop_expiry
DELETE FROM expiry WHERE job_id = ?

-- name: joins
SELECT join_id FROM member WHERE job_id = ? ORDER BY join_id

-- name: arrive
-- Only the first insertion counts: a replayed member arrives once.
INSERT INTO arrival (join_id, job_id) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: subtract
UPDATE blocked SET remaining = remaining - ? WHERE job_id = ? RETURNING remaining

-- name: unblock
DELETE FROM blocked WHERE job_id = ? RETURNING due_at

-- name: timer
INSERT INTO timer (due_at, job_id, attempt, losses, crashes) VALUES (?, ?, 0, 0, 0)

-- name: forget_members
-- Kept until the join is released: a dead member that is replayed must find that it has arrived.
DELETE FROM member WHERE join_id = ?

-- name: forget_arrivals
DELETE FROM arrival WHERE join_id = ?

-- name: lane
SELECT queue, priority FROM job WHERE id = ?

-- name: stub_body
-- A job whose body is gone ends visibly: the dead letter needs something to show.
INSERT INTO job (id, task, queue, priority, payload, created_at)
VALUES (?, 'missing', ?, ?, CAST('{"args":[],"kwargs":{}}' AS BLOB), ?)

-- name: free_slot
DELETE FROM slot WHERE job_id = ? RETURNING key

-- name: held_slots
SELECT count(*) FROM slot WHERE key = ?

-- name: has_slot
SELECT 1 FROM slot WHERE job_id = ?

-- name: take_slot
-- 0 rows: the limit is reached.
INSERT INTO slot (key, job_id) SELECT ?1, ?2 WHERE (SELECT count(*) FROM slot WHERE key = ?1) < ?3

-- name: oldest_waiter
-- Served: claimed from by somebody, or by nobody because there is no worker at all.
SELECT p.job_id, p.tag, p.seq, p.attempt, p.losses, p.crashes, j.queue, j.priority, j.limit_size,
       NOT EXISTS (SELECT 1 FROM queue_setting s WHERE s.queue = j.queue AND s.paused)
       AND (NOT EXISTS (SELECT 1 FROM worker) OR EXISTS (SELECT 1 FROM worker w WHERE w.queues = '[]'
            OR EXISTS (SELECT 1 FROM json_each(w.queues) e WHERE e.value = j.queue)))
FROM parked p LEFT JOIN job j ON j.id = p.job_id
WHERE p.reason = 'limit' AND p.key = ? ORDER BY p.seq LIMIT 1

-- name: reserved_slots
-- Of jobs that wait in a queue: whoever claims from it takes one again.
DELETE FROM slot WHERE job_id IN (SELECT job_id FROM ready WHERE queue = ?) RETURNING key

-- name: unpark
DELETE FROM parked WHERE job_id = ?
