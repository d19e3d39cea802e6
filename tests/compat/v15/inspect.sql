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
       p.key AS waits_at, a.cancel_reason IS NOT NULL AS cancel_requested,
       g.done, g.total, g.stage, g.at
FROM unnest($1::uuid[]) AS asked (id) JOIN holdfast.job j ON j.id = ANY (ARRAY[asked.id])
LEFT JOIN holdfast.done d ON d.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.dead x ON x.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.active a ON a.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.timer t ON t.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.parked p ON p.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.blocked b ON b.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.progress g ON g.job_id = ANY (ARRAY[j.id])

-- name: attempts
SELECT job_id, token, number, cause, error_type, error_message, traceback, worker, started_at, ended_at
FROM holdfast.attempt WHERE job_id = ANY ($1) ORDER BY job_id, token

-- name: endings
SELECT asked.id, j.id IS NOT NULL,
       CASE WHEN d.job_id IS NOT NULL THEN CASE WHEN d.cancelled THEN 'cancelled' ELSE 'succeeded' END
            WHEN x.job_id IS NOT NULL THEN 'dead' END,
       d.result, coalesce(d.reason, x.reason), x.error_type, x.error_message
FROM unnest($1::uuid[]) AS asked (id) LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[asked.id])
LEFT JOIN holdfast.done d ON d.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.dead x ON x.job_id = ANY (ARRAY[j.id])
