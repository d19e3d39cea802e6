-- insert_jobs: an id is inserted once; its place (ready, timer or blocked) comes in the same transaction.

-- name: new
SELECT holdfast.insert_new_jobs($1::uuid[], $2::bytea[], $3::int4[], $4::text[], $5::text[], $6::int2[], $7::text[],
                                $8::int4[], $9::bytea[], $10::text[], $11::bytea[], $12::bytea[])

-- name: fair
-- The same where there are tenants.
SELECT holdfast.insert_fair_jobs($1::uuid[], $2::bytea[], $3::int4[], $4::text[], $5::text[], $6::int2[], $7::text[],
                                 $8::int4[], $9::bytea[], $10::text[], $11::bytea[], $12::bytea[], $13::int4[],
                                 $14::int4[], $15::text[], $16::int2[], $17::text[], $18::int4[], $19::uuid[])

-- name: gated
-- The same for jobs with gates, whether there are tenants or not.
SELECT holdfast.insert_gated_jobs($1::uuid[], $2::bytea[], $3::int4[], $4::text[], $5::text[], $6::int2[], $7::text[],
                                  $8::int4[], $9::bytea[], $10::text[], $11::bytea[], $12::bytea[], $13::int4[],
                                  $14::int4[], $15::text[], $16::int2[], $17::text[], $18::int4[], $19::uuid[],
                                  $20::text[], $21::text[], $22::int4[])

-- name: ordinary
-- The same where some of the ids may be there already.
SELECT * FROM holdfast.insert_jobs($1::uuid[], $2::text[], $3::text[], $4::int2[], $5::bytea[], $6::text[],
                                   $7::bytea[], $8::int4[], $9::text[], $10::bytea[], $11::bytea[])

-- name: set_lock_timeout
-- For as long as the transaction lasts; only in one of ours.
SELECT set_config('lock_timeout', '2s', true)

-- name: existing
SELECT id FROM holdfast.job WHERE id = ANY ($1)

-- name: holders
-- Who holds these keys now; a key whose window has passed is free.
SELECT k.tenant, k.key, k.job_id, k.fingerprint
FROM unnest($1::text[], $2::text[]) AS asked (tenant, key) JOIN holdfast.idempotency_key k USING (tenant, key)
WHERE k.expires_at > $3

-- name: take_keys
SELECT * FROM holdfast.take_keys($1::text[], $2::text[], $3::bytea[], $4::uuid[], $5::float8[], $6::timestamptz)

-- name: unique_holders
-- Whose these keys are, in which version of the row, and where he is; nowhere, if he is not there any more, and then until
-- when his window is open.
SELECT u.key, u.job_id, u.xmin::text, CASE
           WHEN j.id IS NULL THEN NULL WHEN d.job_id IS NOT NULL THEN CASE WHEN d.cancelled THEN 'cancelled' ELSE 'succeeded' END
           WHEN x.job_id IS NOT NULL THEN 'dead' WHEN a.job_id IS NOT NULL THEN 'running'
           WHEN t.job_id IS NOT NULL THEN 'scheduled' WHEN p.job_id IS NOT NULL THEN 'parked'
           WHEN b.job_id IS NOT NULL THEN 'blocked' ELSE 'ready' END,
       extract(epoch FROM j.created_at)::float8, extract(epoch FROM u.first_at)::float8,
       t.job_id IS NOT NULL AND EXISTS (SELECT 1 FROM holdfast.attempt y WHERE y.job_id = ANY (ARRAY[j.id])),
       CASE WHEN j.id IS NULL AND u.expires_at > $2 THEN extract(epoch FROM u.expires_at)::float8 END
FROM unnest($1::text[]) AS asked (key) JOIN holdfast.unique_key u ON u.key = asked.key
LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[u.job_id])
LEFT JOIN holdfast.done d ON d.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.dead x ON x.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.active a ON a.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.timer t ON t.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.parked p ON p.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.blocked b ON b.job_id = ANY (ARRAY[j.id])

-- name: take_unique
SELECT * FROM holdfast.take_seen_unique($1::text[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::text[])

-- name: write_bodies
INSERT INTO holdfast.job (id, task, queue, priority, tenant, payload, options, max_attempts, tags, metadata, headers,
                          expires_at, gates, limit_key, limit_size, created_at)
SELECT id, task, queue, priority, tenant, payload, options, max_attempts,
       CASE WHEN tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(tags::jsonb)) END,
       metadata, headers, coalesce($15::timestamptz + expires_in_s * interval '1 second', to_timestamp(expires_at)),
       gates, limit_key, limit_size, $15
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int2[], $5::text[], $6::bytea[], $7::bytea[], $8::int4[],
            $9::text[], $10::bytea[], $11::bytea[], $12::float8[], $13::float8[], $14::text[], $16::text[],
            $17::int4[])
    AS j (id, task, queue, priority, tenant, payload, options, max_attempts, tags, metadata, headers, expires_in_s,
          expires_at, gates, limit_key, limit_size)
ON CONFLICT DO NOTHING
RETURNING id, expires_at

-- name: write_unique_bodies
-- The same where some of them have to be unique.
INSERT INTO holdfast.job (id, task, queue, priority, tenant, payload, options, max_attempts, tags, metadata, headers,
                          expires_at, gates, limit_key, limit_size, unique_claim, created_at)
SELECT id, task, queue, priority, tenant, payload, options, max_attempts,
       CASE WHEN tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(tags::jsonb)) END,
       metadata, headers, coalesce($15::timestamptz + expires_in_s * interval '1 second', to_timestamp(expires_at)),
       gates, limit_key, limit_size, unique_claim, $15
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int2[], $5::text[], $6::bytea[], $7::bytea[], $8::int4[],
            $9::text[], $10::bytea[], $11::bytea[], $12::float8[], $13::float8[], $14::text[], $16::text[],
            $17::int4[], $18::text[])
    AS j (id, task, queue, priority, tenant, payload, options, max_attempts, tags, metadata, headers, expires_in_s,
          expires_at, gates, limit_key, limit_size, unique_claim)
ON CONFLICT DO NOTHING
RETURNING id, expires_at

-- name: timers
INSERT INTO holdfast.timer (job_id, due_at, attempt, losses, crashes, attached, queue)
SELECT t.job_id, t.due_at, 0, 0, 0, t.attached, j.queue
FROM unnest($1::uuid[], $2::timestamptz[], $3::bool[]) AS t (job_id, due_at, attached)
JOIN holdfast.job j ON j.id = ANY (ARRAY[t.job_id])

-- name: expiries
INSERT INTO holdfast.expiry (job_id, expires_at) SELECT * FROM unnest($1::uuid[], $2::timestamptz[])

-- name: attach
-- Tell the awaited jobs, wherever they are, that somebody waits for them, and hold them there until we commit; those
-- found. A job may move between two of these statements, so they are repeated until each is found or has ended.
WITH r AS (UPDATE holdfast.ready SET attached = true WHERE job_id = ANY ($1) RETURNING job_id),
     t AS (UPDATE holdfast.timer SET attached = true WHERE job_id = ANY ($1) RETURNING job_id),
     a AS (UPDATE holdfast.active SET attached = true WHERE job_id = ANY ($1) RETURNING job_id),
     p AS (UPDATE holdfast.parked SET attached = true WHERE job_id = ANY ($1) RETURNING job_id),
     b AS (UPDATE holdfast.blocked SET attached = true WHERE job_id = ANY ($1) RETURNING job_id)
SELECT job_id FROM r UNION SELECT job_id FROM t UNION SELECT job_id FROM a
UNION SELECT job_id FROM p UNION SELECT job_id FROM b

-- name: not_ended
SELECT id FROM holdfast.job j WHERE id = ANY ($1)
    AND NOT EXISTS (SELECT 1 FROM holdfast.done WHERE job_id = j.id)
    AND NOT EXISTS (SELECT 1 FROM holdfast.dead WHERE job_id = j.id)

-- name: members
INSERT INTO holdfast.member (job_id, join_id) SELECT * FROM unnest($1::uuid[], $2::uuid[])

-- name: blocked
INSERT INTO holdfast.blocked (job_id, remaining, due_at, attached, queue)
SELECT b.*, j.queue
FROM unnest($1::uuid[], $2::int4[], $3::timestamptz[], $4::bool[]) AS b (job_id, remaining, due_at, attached)
JOIN holdfast.job j ON j.id = ANY (ARRAY[b.job_id])
