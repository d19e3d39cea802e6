-- Reports. A job's state is read from all tables in one statement, so that a moving job is in exactly one.

-- name: infos
SELECT j.id, j.task, j.queue, j.priority, j.tenant, j.payload, j.max_attempts, j.tags, j.metadata, j.expires_at,
       j.created_at,
       CASE WHEN d.job_id IS NOT NULL THEN CASE WHEN d.cancelled THEN 'cancelled' ELSE 'succeeded' END
            WHEN x.job_id IS NOT NULL THEN 'dead'
            WHEN a.job_id IS NOT NULL THEN 'running' WHEN r.job_id IS NOT NULL THEN 'ready'
            WHEN t.job_id IS NOT NULL THEN 'scheduled' WHEN p.job_id IS NOT NULL THEN 'parked'
            WHEN b.job_id IS NOT NULL THEN 'blocked' END AS state,
       coalesce(d.attempt, x.attempt, a.attempt, r.attempt, t.attempt, p.attempt, 0) AS attempt,
       t.due_at,
       coalesce(d.started_at, x.started_at, a.started_at) AS started_at,
       coalesce(d.ended_at, x.ended_at) AS ended_at,
       coalesce(d.worker, x.worker, a.worker) AS worker,
       d.result, coalesce(d.reason, x.reason, p.reason, a.cancel_reason) AS reason, x.error_type, x.error_message,
       a.cancel_reason IS NOT NULL AS cancel_requested,
       g.done, g.total, g.stage, g.at
FROM unnest($1::uuid[]) AS asked (id) JOIN holdfast.job j ON j.id = asked.id
LEFT JOIN holdfast.done d ON d.job_id = j.id LEFT JOIN holdfast.dead x ON x.job_id = j.id
LEFT JOIN holdfast.active a ON a.job_id = j.id LEFT JOIN holdfast.ready r ON r.job_id = j.id
LEFT JOIN holdfast.timer t ON t.job_id = j.id LEFT JOIN holdfast.parked p ON p.job_id = j.id
LEFT JOIN holdfast.blocked b ON b.job_id = j.id LEFT JOIN holdfast.progress g ON g.job_id = j.id

-- name: attempts
SELECT job_id, token, number, cause, error_type, error_message, traceback, worker, started_at, ended_at
FROM holdfast.attempt WHERE job_id = ANY ($1) ORDER BY job_id, token

-- name: endings
SELECT asked.id, j.id IS NOT NULL,
       CASE WHEN d.job_id IS NOT NULL THEN CASE WHEN d.cancelled THEN 'cancelled' ELSE 'succeeded' END
            WHEN x.job_id IS NOT NULL THEN 'dead' END,
       d.result, coalesce(d.reason, x.reason), x.error_type, x.error_message
FROM unnest($1::uuid[]) AS asked (id) LEFT JOIN holdfast.job j ON j.id = asked.id
LEFT JOIN holdfast.done d ON d.job_id = j.id LEFT JOIN holdfast.dead x ON x.job_id = j.id

-- name: find_any
SELECT j.id FROM holdfast.job j WHERE TRUE {filters} ORDER BY j.id DESC LIMIT {limit}

-- name: find_ready
SELECT j.id FROM holdfast.ready s JOIN holdfast.job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_scheduled
SELECT j.id FROM holdfast.timer s JOIN holdfast.job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_running
SELECT j.id FROM holdfast.active s JOIN holdfast.job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_parked
SELECT j.id FROM holdfast.parked s JOIN holdfast.job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_blocked
SELECT j.id FROM holdfast.blocked s JOIN holdfast.job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_succeeded
SELECT j.id FROM holdfast.done s JOIN holdfast.job j ON j.id = s.job_id
WHERE NOT s.cancelled {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_cancelled
SELECT j.id FROM holdfast.done s JOIN holdfast.job j ON j.id = s.job_id
WHERE s.cancelled {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- name: find_dead
SELECT j.id FROM holdfast.dead s JOIN holdfast.job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY s.job_id DESC LIMIT {limit}

-- The only conditions there are; which of them apply is chosen, and their values are bound in place of `?`.

-- name: where_queue
AND j.queue = ?

-- name: where_task
AND j.task = ?

-- name: where_tenant
AND j.tenant = ?

-- name: where_tag
AND j.tags @> ARRAY[?::text]

-- name: where_created_after
AND j.created_at >= ?

-- name: where_created_before
AND j.created_at < ?

-- name: where_error_type
AND j.id IN (SELECT job_id FROM holdfast.dead WHERE error_type = ?)

-- name: where_text
AND j.id IN (SELECT job_id FROM holdfast.dead WHERE strpos(lower(error_message), lower(?)) > 0)

-- name: where_reason
AND j.id IN (SELECT job_id FROM holdfast.dead WHERE reason = ?
             UNION ALL SELECT job_id FROM holdfast.parked WHERE reason = ?
             UNION ALL SELECT job_id FROM holdfast.done WHERE reason = ?)
