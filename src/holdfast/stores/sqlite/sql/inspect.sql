-- Reports. A job's state is read from all tables in one statement, so that a moving job is in exactly one.

-- name: info
SELECT j.id, j.task, j.queue, j.priority, j.tenant, j.payload, j.max_attempts, j.tags, j.metadata, j.expires_at,
       j.created_at,
       CASE WHEN d.job_id IS NOT NULL THEN d.state WHEN x.job_id IS NOT NULL THEN 'dead'
            WHEN a.job_id IS NOT NULL THEN 'running' WHEN r.job_id IS NOT NULL THEN 'ready'
            WHEN t.job_id IS NOT NULL THEN 'scheduled' WHEN p.job_id IS NOT NULL THEN 'parked'
            WHEN b.job_id IS NOT NULL THEN 'blocked' END,
       coalesce(d.attempt, x.attempt, a.attempt, r.attempt, t.attempt, p.attempt, 0),
       t.due_at,
       coalesce(d.started_at, x.started_at, a.started_at),
       coalesce(d.ended_at, x.ended_at),
       coalesce(d.worker, x.worker, a.worker),
       d.result, coalesce(d.reason, x.reason, p.reason, a.cancel_reason), x.error_type, x.error_message,
       a.cancel_reason IS NOT NULL,
       g.done, g.total, g.stage, g.at, p.key
FROM job j
LEFT JOIN done d ON d.job_id = j.id LEFT JOIN dead x ON x.job_id = j.id
LEFT JOIN active a ON a.job_id = j.id LEFT JOIN ready r ON r.job_id = j.id
LEFT JOIN timer t ON t.job_id = j.id LEFT JOIN parked p ON p.job_id = j.id
LEFT JOIN blocked b ON b.job_id = j.id LEFT JOIN progress g ON g.job_id = j.id
WHERE j.id = ?

-- name: attempts
SELECT token, number, cause, error_type, error_message, traceback, worker, started_at, ended_at
FROM attempt WHERE job_id = ? ORDER BY token

-- name: ending
SELECT j.id, coalesce(d.state, CASE WHEN x.job_id IS NOT NULL THEN 'dead' END), d.result,
       coalesce(d.reason, x.reason), x.error_type, x.error_message
FROM job j LEFT JOIN done d ON d.job_id = j.id LEFT JOIN dead x ON x.job_id = j.id
WHERE j.id = ?

-- name: find_any
SELECT j.id FROM job j
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_ready
SELECT j.id FROM ready s CROSS JOIN job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_scheduled
SELECT j.id FROM timer s CROSS JOIN job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_running
SELECT j.id FROM active s CROSS JOIN job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_parked
SELECT j.id FROM parked s CROSS JOIN job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_blocked
SELECT j.id FROM blocked s CROSS JOIN job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_succeeded
SELECT j.id FROM done s CROSS JOIN job j ON j.id = s.job_id
WHERE s.state = 'succeeded' {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_cancelled
SELECT j.id FROM done s CROSS JOIN job j ON j.id = s.job_id
WHERE s.state = 'cancelled' {filters} ORDER BY j.id DESC LIMIT :limit

-- name: find_dead
SELECT j.id FROM dead s CROSS JOIN job j ON j.id = s.job_id
WHERE TRUE {filters} ORDER BY j.id DESC LIMIT :limit
