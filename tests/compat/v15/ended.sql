-- What happens to jobs that have ended: replay, edit, purge, prune. Only a person's word takes a job out of `dead`.

-- name: dead_unique
-- Those that have to be unique, held as dead as they are, in one order: before their keys, as whoever purges them does.
-- Programs of before have not kept what was said; it shows where the key is still theirs.
SELECT d.job_id, coalesce(j.unique_claim, json_build_array(u.key)::text), extract(epoch FROM j.created_at)::float8
FROM holdfast.dead d JOIN holdfast.job j ON j.id = ANY (ARRAY[d.job_id])
LEFT JOIN holdfast.unique_key u ON u.job_id = ANY (ARRAY[d.job_id])
WHERE d.job_id = ANY ($1) AND (j.unique_claim IS NOT NULL OR u.key IS NOT NULL) ORDER BY d.job_id FOR UPDATE OF d

-- name: hold_unique
-- In one order, and made where they are missing, so that whoever takes one waits for us, and then looks at it again.
INSERT INTO holdfast.unique_key AS u (key, job_id, first_at, expires_at)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::timestamptz[])
    AS t (key, job_id, first_at, expires_at) ORDER BY t.key
ON CONFLICT (key) DO UPDATE SET key = excluded.key

-- name: retake_unique
UPDATE holdfast.unique_key u SET job_id = t.job_id, first_at = t.first_at, expires_at = t.expires_at
FROM unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::timestamptz[]) AS t (key, job_id, first_at, expires_at)
WHERE u.key = t.key AND u.job_id <> t.job_id

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
UPDATE holdfast.job j SET payload = $2 FROM held WHERE j.id = held.job_id RETURNING j.unique_claim

-- name: claim_anew
UPDATE holdfast.job SET unique_claim = $2 WHERE id = $1

-- name: give_up
DELETE FROM holdfast.unique_key WHERE key = $1 AND job_id = $2

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
