-- Jobs that wait, given another queue or priority; and where a job stands.

-- name: leave_ready
DELETE FROM holdfast.ready WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.ready WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED))
RETURNING job_id, queue, priority, attempt, losses, crashes, attached

-- name: shift
-- Those that wait for something else stay there; with the queue that they were counted in.
WITH t AS (UPDATE holdfast.timer SET queue = coalesce($2, queue) WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.timer WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED)) RETURNING job_id),
     b AS (UPDATE holdfast.blocked SET queue = coalesce($2, queue) WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.blocked WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED)) RETURNING job_id),
     p AS (UPDATE holdfast.parked p SET queue = coalesce($2, p.queue)
           FROM (SELECT ctid AS at, queue FROM holdfast.parked WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED) o
           WHERE p.ctid = o.at RETURNING p.job_id, o.queue)
SELECT job_id, NULL AS counted FROM t UNION ALL SELECT job_id, NULL FROM b UNION ALL SELECT job_id, queue FROM p

-- name: bodies
UPDATE holdfast.job SET queue = coalesce($2, queue), priority = coalesce($3, priority) WHERE id = ANY ($1)

-- name: named_tenants
SELECT EXISTS (SELECT 1 FROM holdfast.job WHERE id = ANY ($1) AND tenant <> '')

-- name: position
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM holdfast.ready x WHERE x.queue = r.queue AND x.priority = r.priority
                AND (x.tag, x.seq) < (r.tag, r.seq) ORDER BY x.tag, x.seq LIMIT $2) n), r.entered_at
FROM holdfast.ready r WHERE r.job_id = $1
