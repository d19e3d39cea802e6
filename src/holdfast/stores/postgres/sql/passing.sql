-- Jobs that have gates, or that rules concern: `ready` → `active` or `parked`, judged while their gates are held.

-- name: limited
SELECT * FROM holdfast.claim_limited($1, $2)

-- name: pick
SELECT * FROM holdfast.pick_jobs($1, $2)

-- name: hold
-- A moment that nobody can have meant is none.
SELECT job_id, kind, key, held, CASE WHEN full_at BETWEEN '0100-01-01' AND '9890-01-01' THEN full_at END, recent,
       CASE WHEN open_until BETWEEN '0100-01-01' AND '9890-01-01' THEN open_until END, is_held, now
FROM holdfast.hold_gates($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6, $7)

-- name: keep_out
SELECT holdfast.keep_out($1::text[], $2::int8[])

-- name: claim
SELECT * FROM holdfast.claim_judged($1, $2, $3::uuid[], $4::bool[], $5::uuid[], $6::text[], $7::text[], $8::uuid[],
                                    $9::uuid[], $10::text[], $11::text[], $12::int4[], $13::uuid[], $14::text[],
                                    $15::timestamptz[], $16::text[], $17::text[], $18::timestamptz[], $19::text[],
                                    $20::int8[], $21::int8[])

-- name: newer_at
-- Of those who run with a slot of a limit, are about to, or wait for one, the newest that was enqueued after a job; not some
-- others, nor one that was asked to stop.
SELECT o.job_id FROM (
    SELECT s.job_id FROM holdfast.slot s WHERE s.key = $2 AND s.kind = $1
    UNION ALL SELECT p.job_id FROM holdfast.parked p WHERE p.reason = $1 AND p.key = $2
) o JOIN holdfast.job j ON j.id = ANY (ARRAY[o.job_id]) JOIN holdfast.job me ON me.id = $3
WHERE o.job_id <> ALL ($4) AND (j.created_at, j.id) > (me.created_at, me.id)
    AND NOT EXISTS (SELECT 1 FROM holdfast.active a WHERE a.job_id = o.job_id AND a.cancel_reason IS NOT NULL)
ORDER BY j.created_at DESC, j.id DESC LIMIT 1

-- name: leave_parked
DELETE FROM holdfast.parked WHERE job_id = $1 RETURNING job_id, attempt, queue

-- name: flag_holders
-- Those who run with a slot of this limit are asked to stop; one that just ends is passed over.
UPDATE holdfast.active SET cancel_reason = coalesce(cancel_reason, $3) WHERE ctid = ANY (ARRAY(
    SELECT a.ctid FROM holdfast.slot s JOIN holdfast.active a ON a.job_id = ANY (ARRAY[s.job_id])
    WHERE s.key = $2 AND s.kind = $1 FOR UPDATE OF a SKIP LOCKED))
RETURNING job_id

-- name: leave_ready
-- Those for whom a slot of this limit is kept.
DELETE FROM holdfast.ready WHERE ctid = ANY (ARRAY(
    SELECT r.ctid FROM holdfast.slot s JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[s.job_id])
    WHERE s.key = $2 AND s.kind = $1 FOR UPDATE OF r SKIP LOCKED))
RETURNING job_id, attempt, queue

-- name: leave_gate
-- Those who wait at a gate, but for some.
DELETE FROM holdfast.parked WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.parked WHERE reason = $1 AND key = $2 AND job_id <> ALL ($3)
    FOR UPDATE SKIP LOCKED))
RETURNING job_id, attempt, queue

-- name: left_at
-- Whether anybody is left whom the two statements before this one have passed over: somebody claims or moves him.
SELECT 1 FROM holdfast.slot s JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[s.job_id]) WHERE s.key = $2 AND s.kind = $1
UNION ALL SELECT 1 FROM holdfast.parked WHERE reason = $1 AND key = $2 AND job_id <> ALL ($3) LIMIT 1
