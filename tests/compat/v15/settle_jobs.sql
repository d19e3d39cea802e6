-- settle_jobs: every statement that touches `active` is fenced by job, token and worker.

-- name: successes
SELECT * FROM holdfast.settle_successes($1, $2, $3, $4, $5::text[], $6)

-- name: outcomes
-- The same for every outcome.
SELECT * FROM holdfast.settle_outcomes($1, $2::uuid[], $3::int8[], $4::text[], $5::text[], $6::bytea[], $7::float8[],
                                       $8::text[], $9::text[], $10::bool[], $11::text[], $12::text[], $13::text[],
                                       $14::text[], $15::text[], $16, $17, $18::text[])

-- name: leases
DELETE FROM holdfast.active a USING unnest($2::uuid[], $3::int8[]) AS s (job_id, token)
WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = $1) IS TRUE
RETURNING a.job_id, a.token, a.worker, a.attempt, a.queue, a.priority, a.tag, a.seq, a.losses, a.crashes,
          a.started_at, a.cancel_reason, a.attached

-- name: on_record
-- How these runs ended, as far as that is known.
SELECT s.job_id, s.token, coalesce(t.cause, CASE WHEN d.job_id IS NOT NULL THEN 'succeeded' END)
FROM unnest($1::uuid[], $2::int8[]) AS s (job_id, token)
LEFT JOIN holdfast.attempt t ON t.job_id = ANY (ARRAY[s.job_id]) AND t.token = s.token
LEFT JOIN holdfast.done d ON d.job_id = ANY (ARRAY[s.job_id]) AND d.token = s.token AND NOT d.cancelled

-- name: timers
INSERT INTO holdfast.timer (job_id, due_at, attempt, losses, crashes, attached, queue)
SELECT t.job_id, $7::timestamptz + t.delay_s * interval '1 second', t.attempt, t.losses, t.crashes, t.attached,
       coalesce(j.queue, '')
FROM unnest($1::uuid[], $2::float8[], $3::int4[], $4::int2[], $5::int2[], $6::bool[])
    AS t (job_id, delay_s, attempt, losses, crashes, attached)
LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[t.job_id])

-- name: wait
INSERT INTO holdfast.parked (job_id, reason, key, tag, seq, attempt, losses, crashes, attached, queue, parked_at)
SELECT *, $11 FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int4[], $7::int2[], $8::int2[],
                          $9::bool[], $10::text[])

-- name: attempts
INSERT INTO holdfast.attempt (job_id, token, number, cause, error_type, error_message, traceback, worker, started_at,
                              ended_at)
SELECT *, $10 FROM unnest($1::uuid[], $2::int8[], $3::int4[], $4::text[], $5::text[], $6::text[], $7::text[],
                          $8::uuid[], $9::timestamptz[])

-- name: bound_attempts
-- A job may snooze for years: the newest runs are kept.
DELETE FROM holdfast.attempt a USING unnest($1::uuid[]) AS j (job_id)
WHERE a.job_id = ANY (ARRAY[j.job_id]) AND a.token <= (
    SELECT token FROM holdfast.attempt b WHERE b.job_id = j.job_id ORDER BY token DESC LIMIT 1 OFFSET $2)

-- name: progress
INSERT INTO holdfast.progress (job_id, done, total, stage, at)
SELECT job_id, $4, $5, $6, holdfast.clock() FROM holdfast.active WHERE job_id = $2 AND token = $3 AND worker = $1
ON CONFLICT (job_id) DO UPDATE
    SET done = excluded.done, total = excluded.total, stage = excluded.stage, at = excluded.at
RETURNING true
