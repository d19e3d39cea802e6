-- claim_jobs: `ready` → `active` under a valid lease; the worker's row is checked and held in the same transaction.

-- name: ordinary
SELECT * FROM holdfast.claim_jobs($1, $2, $3, $4, $5, $6)

-- name: hold_lease
SELECT 1 FROM holdfast.worker WHERE id = $1 AND lease_until > holdfast.clock() FOR KEY SHARE

-- name: pick_alone
-- The oldest job of a lane that must run alone; its columns are those of the function `pick_jobs`.
SELECT r.job_id, r.queue, r.priority, r.attempt, r.losses, r.crashes, r.attached, r.tag, r.seq,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.gates,
       ARRAY(SELECT s.kind || ' ' || s.key FROM holdfast.slot s WHERE s.job_id = r.job_id) AS slots,
       EXISTS (SELECT 1 FROM holdfast.rule) AS ruled, holdfast.said() AS said, holdfast.clock() AS now
FROM holdfast.ready r LEFT JOIN holdfast.job j ON j.id = r.job_id
WHERE r.queue = $1 AND r.priority = $2 AND r.losses >= 2
    AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = r.queue AND s.paused)
ORDER BY r.tag, r.seq LIMIT 1 FOR UPDATE OF r SKIP LOCKED

-- name: lonely_lanes
SELECT DISTINCT queue, priority FROM holdfast.ready WHERE losses >= 2

-- name: stub_bodies
-- A job whose body is gone ends visibly: the dead letter needs something to show.
INSERT INTO holdfast.job (id, task, queue, priority, payload, created_at)
SELECT id, 'missing', queue, priority, convert_to('{"args":[],"kwargs":{}}', 'UTF8'), $4
FROM unnest($1::uuid[], $2::text[], $3::int2[]) AS b (id, queue, priority)
