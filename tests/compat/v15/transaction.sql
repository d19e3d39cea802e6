-- What every verb shares: the clock, the way into `ready`, and the depth kept beside it.

-- name: now
SELECT holdfast.clock()

-- name: enter_ready
INSERT INTO holdfast.ready (job_id, queue, priority, attempt, losses, crashes, attached, tag, seq, entered_at)
SELECT job_id, queue, priority, attempt, losses, crashes, attached, tag, coalesce(seq, nextval('holdfast.place')), $10
FROM unnest($1::uuid[], $2::text[], $3::int2[], $4::int4[], $5::int2[], $6::int2[], $7::bool[], $8::int8[], $9::int8[])
    AS p (job_id, queue, priority, attempt, losses, crashes, attached, tag, seq)

-- name: change_depths
INSERT INTO holdfast.depth_change (queue, change, parked) SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[])

-- name: breathe
-- A moment in which others may finish what they have in hand.
SELECT pg_sleep(0.01)
