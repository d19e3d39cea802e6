-- What happens to jobs that have ended: replay, edit, purge, prune. Only a person's word takes a job out of `dead`.

-- name: revive
DELETE FROM holdfast.dead d WHERE job_id = ANY ($1) AND EXISTS (SELECT 1 FROM holdfast.job j WHERE j.id = d.job_id)
RETURNING job_id, token

-- name: tell_headless
-- Dead letters whose body is gone stay where they are, and say so; the report needs something to show.
WITH headless AS (
    UPDATE holdfast.dead d
    SET reason = $2, error_type = $3, error_message = $4, fingerprint = $5, words = string_to_array($6, ' ')
    WHERE job_id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM holdfast.job j WHERE j.id = d.job_id)
    RETURNING job_id, queue
)
INSERT INTO holdfast.job (id, task, queue, priority, payload, created_at)
SELECT job_id, 'missing', queue, $7, convert_to('{"args":[],"kwargs":{}}', 'UTF8'), $8 FROM headless

-- name: close_chapters
UPDATE holdfast.attempt a SET cause = 'replay' FROM unnest($1::uuid[], $2::int8[]) AS c (job_id, token)
WHERE a.job_id = ANY (ARRAY[c.job_id]) AND a.token = c.token

-- name: reopen
-- A person's word counts for more than the old deadline.
UPDATE holdfast.job SET expires_at = NULL WHERE id = ANY ($1)
RETURNING id, queue, priority, gates IS NOT NULL AS attached

-- name: edit
WITH held AS (SELECT job_id FROM holdfast.dead WHERE job_id = $1 FOR UPDATE)
UPDATE holdfast.job j SET payload = $2 FROM held WHERE j.id = held.job_id RETURNING true

-- name: purge
DELETE FROM holdfast.dead WHERE job_id = ANY ($1) RETURNING job_id

-- name: prune
DELETE FROM holdfast.done WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.done WHERE cancelled = $1 AND ended_at <= $2 ORDER BY ended_at LIMIT $3
    FOR UPDATE SKIP LOCKED))
RETURNING job_id

-- name: drop_attempts
DELETE FROM holdfast.attempt WHERE job_id = ANY ($1)

-- name: drop_progress
DELETE FROM holdfast.progress WHERE job_id = ANY ($1)

-- name: drop_unique
DELETE FROM holdfast.unique_key WHERE job_id = ANY ($1)

-- name: drop_closed_unique
-- The same, but for keys whose windows are still open.
DELETE FROM holdfast.unique_key WHERE job_id = ANY ($1) AND (expires_at > $2) IS NOT TRUE

-- name: note_cancelled
-- Keys whose windows outlast jobs that were cancelled: their times with the sign changed say so (stores/judging.py).
UPDATE holdfast.unique_key SET first_at = to_timestamp(-extract(epoch FROM first_at)) WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.unique_key WHERE job_id = ANY ($1) AND expires_at > $2 AND first_at > 'epoch'
    FOR UPDATE SKIP LOCKED))

-- name: drop_bodies
DELETE FROM holdfast.job WHERE id = ANY ($1)
