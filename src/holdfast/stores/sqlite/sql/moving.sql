-- move_jobs, position: where jobs stand, and where they are put. Those that run or have ended stay where they are.

-- name: body
SELECT queue, priority, tenant FROM job WHERE id = ?

-- name: ready
SELECT attempt, losses, crashes FROM ready WHERE job_id = ?

-- name: to_the_tail
UPDATE ready SET queue = ?, priority = ?, tag = ?, seq = ?, entered_at = ? WHERE job_id = ?

-- name: parked
SELECT reason, key, queue, priority, tenant, line FROM parked WHERE job_id = ?

-- name: waits_elsewhere
SELECT EXISTS (SELECT 1 FROM timer WHERE job_id = ?1) OR EXISTS (SELECT 1 FROM blocked WHERE job_id = ?1)

-- name: set_lane
UPDATE job SET queue = ?, priority = ? WHERE id = ?

-- name: set_parked
UPDATE parked SET queue = ?, priority = ?, tenant = ?, tag = ?, seq = seq % ?, line = ? WHERE job_id = ?

-- name: place
SELECT queue, priority, tag, seq, entered_at FROM ready WHERE job_id = ?

-- name: ahead
SELECT count(*) FROM (
    SELECT 1 FROM ready WHERE queue = ?1 AND priority = ?2 AND tag <= ?3 AND (tag < ?3 OR seq < ?4) LIMIT ?5)
