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
