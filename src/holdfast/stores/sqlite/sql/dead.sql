-- The dead letters: replay, edit, purge; nothing else takes a job out of `dead`.

-- name: revive
DELETE FROM dead WHERE job_id = ? RETURNING token, attempt

-- name: close_chapter
UPDATE attempt SET cause = 'replay' WHERE job_id = ? AND token = ?

-- name: body
-- A person's word counts for more than the old deadline.
UPDATE job SET expires_at = NULL WHERE id = ? RETURNING queue, priority

-- name: edit
UPDATE job SET payload = :payload WHERE id = :id AND EXISTS (SELECT 1 FROM dead WHERE job_id = :id)

-- name: purge
DELETE FROM dead WHERE job_id = ?
