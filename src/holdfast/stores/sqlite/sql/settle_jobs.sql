-- settle_jobs: every statement that touches `active` is fenced by job, token and worker.

-- name: succeed
INSERT INTO done (job_id, state, token, attempt, worker, started_at, ended_at, result)
SELECT job_id, 'succeeded', token, attempt, worker, started_at, ?, ? FROM active
WHERE job_id = ? AND token = ? AND worker = ?

-- name: leave_active
DELETE FROM active WHERE job_id = ? AND token = ? AND worker = ?

-- name: lease
DELETE FROM active WHERE job_id = ? AND token = ? AND worker = ?
RETURNING job_id, token, worker, attempt, queue, priority, tag, seq, losses, crashes, started_at, cancel_reason

-- name: succeeded_before
SELECT EXISTS (SELECT 1 FROM done WHERE job_id = ? AND token = ? AND state = 'succeeded')

-- name: cause_on_record
SELECT cause FROM attempt WHERE job_id = ? AND token = ?

-- name: timer
INSERT INTO timer (due_at, job_id, attempt, losses, crashes) VALUES (?, ?, ?, ?, ?)

-- name: attempt
INSERT INTO attempt (job_id, token, number, cause, error_type, error_message, traceback, worker, started_at,
                     ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: bound_attempts
-- A job may snooze for years: the newest runs are kept.
DELETE FROM attempt WHERE job_id = :job AND token <= (
    SELECT token FROM attempt WHERE job_id = :job ORDER BY token DESC LIMIT 1 OFFSET :keep)

-- name: progress
INSERT INTO progress (job_id, done, total, stage, at)
SELECT job_id, :done, :total, :stage, :now FROM active
WHERE job_id = :job AND token = :token AND worker = :worker
ON CONFLICT (job_id) DO UPDATE
    SET done = excluded.done, total = excluded.total, stage = excluded.stage, at = excluded.at
