-- prune_jobs: ended and past retention → gone, with all that belongs to it. Keys end with their own window.

-- name: past_retention
SELECT job_id FROM done WHERE state = ? AND ended_at <= ? ORDER BY ended_at LIMIT ?

-- name: drop_done
DELETE FROM done WHERE job_id = ?

-- name: drop_attempts
DELETE FROM attempt WHERE job_id = ?

-- name: drop_progress
DELETE FROM progress WHERE job_id = ?

-- name: drop_body
DELETE FROM job WHERE id = ?
