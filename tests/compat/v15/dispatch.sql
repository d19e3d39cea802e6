-- What a transport needs of the store, beside the verbs.

-- name: claim_entries
SELECT * FROM holdfast.claim_entries($1, $2, $3)

-- name: places
-- The lanes of those of these jobs that are ready.
SELECT job_id, queue, priority, tag, losses FROM holdfast.ready WHERE job_id = ANY ($1)

-- name: ready_jobs
-- The head of each lane of a queue, in order.
SELECT r.job_id, l.priority, r.tag, r.losses FROM generate_series(9, 0, -1) AS l (priority) CROSS JOIN LATERAL (
    SELECT job_id, tag, seq, losses FROM holdfast.ready WHERE queue = $1 AND priority = l.priority::int2
    ORDER BY tag, seq LIMIT $2
) r ORDER BY l.priority DESC, r.tag, r.seq

-- name: installation
-- When the tables were made: no two installations were made in the same microsecond.
SELECT to_char(applied_at AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') FROM holdfast.migration WHERE version = 1
