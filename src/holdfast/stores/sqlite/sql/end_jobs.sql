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
SELECT EXISTS (SELECT 1 FROM expiry), EXISTS (SELECT 1 FROM slot), EXISTS (SELECT 1 FROM member),
       EXISTS (SELECT 1 FROM parked WHERE reason = 'limit' OR reason = 'rate' OR reason = 'breaker')

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
