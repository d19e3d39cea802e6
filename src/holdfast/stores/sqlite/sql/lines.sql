-- Lines at gates: lanes that take turns, and in each of them those who wait.

-- name: lanes
-- Of which somebody waits there, one after the other, by the index; and what is known of them. Other priorities of a queue
-- are asked for before other queues: a comparison of both at once would begin with the first waiter of the lane that was
-- found last, and read all of them.
WITH RECURSIVE lane (queue, priority) AS (
    SELECT * FROM (SELECT queue, priority FROM parked WHERE reason = ?1 AND key = ?2 ORDER BY queue, priority LIMIT 1)
    UNION ALL
    SELECT coalesce((SELECT p.queue FROM parked p WHERE p.reason = ?1 AND p.key = ?2 AND p.queue = l.queue
                         AND p.priority > l.priority LIMIT 1),
                    (SELECT p.queue FROM parked p WHERE p.reason = ?1 AND p.key = ?2 AND p.queue > l.queue
                     ORDER BY p.queue LIMIT 1)),
           coalesce((SELECT p.priority FROM parked p WHERE p.reason = ?1 AND p.key = ?2 AND p.queue = l.queue
                         AND p.priority > l.priority ORDER BY p.priority LIMIT 1),
                    (SELECT p.priority FROM parked p WHERE p.reason = ?1 AND p.key = ?2 AND p.queue > l.queue
                     ORDER BY p.queue, p.priority LIMIT 1))
    FROM lane l WHERE l.queue IS NOT NULL
)
SELECT l.queue, l.priority, t.due, t.reached FROM lane l
LEFT JOIN turn t ON t.kind = ?1 AND t.key = ?2 AND t.queue = l.queue AND t.priority = l.priority
WHERE l.queue IS NOT NULL

-- name: overdue
-- Lanes of which somebody was let go from this rate some time ago and is not claimed; of those who must run alone others
-- need not wait.
SELECT DISTINCT queue, priority FROM (
    SELECT r.queue, r.priority FROM slot s CROSS JOIN ready r ON r.job_id = s.job_id
    WHERE s.kind = 'rate' AND s.key = ?1 AND NOT coalesce(s.kept_at BETWEEN ?2 AND ?3, false) AND r.losses < 2 LIMIT 1000)

-- name: weights
SELECT paused, high, low, weight, CAST(weights AS BLOB) FROM queue_setting WHERE queue = ?

-- name: place
SELECT seq, job_id FROM parked WHERE reason = ? AND key = ? AND queue = ? AND priority = ? ORDER BY line, seq LIMIT 1

-- name: waiters
-- By their tags, and by their places where they have none.
SELECT p.job_id, p.tag, p.seq, p.attempt, p.losses, p.crashes, p.line, p.tenant, j.priority, j.task, j.tenant, j.gates
FROM parked p LEFT JOIN job j ON j.id = p.job_id
WHERE p.reason = ? AND p.key = ? AND p.queue = ? AND p.priority = ? ORDER BY p.line, p.seq LIMIT ?

-- name: first
-- Of one tenant, by their places. The index is named: by the other one all of them would be read, and sorted.
SELECT p.job_id, p.tag, p.seq, p.attempt, p.losses, p.crashes, p.line, p.tenant, j.priority, j.task, j.tenant, j.gates
FROM parked p INDEXED BY parked_by_tenant LEFT JOIN job j ON j.id = p.job_id
WHERE p.reason = ? AND p.key = ? AND p.queue = ? AND p.priority = ? AND p.tenant = ? AND p.line > 0 ORDER BY p.seq LIMIT 1

-- name: give_tag
UPDATE parked SET line = ? WHERE job_id = ?

-- name: head
SELECT line FROM parked WHERE reason = ? AND key = ? AND queue = ? AND priority = ? ORDER BY line, seq LIMIT 1

-- name: last
SELECT line, job_id FROM parked WHERE reason = ? AND key = ? AND queue = ? AND priority = ? AND tenant = ? AND line > 0
ORDER BY line DESC LIMIT 1

-- name: remembered
SELECT due, reached FROM turn WHERE kind = ? AND key = ? AND queue = ? AND priority = ?

-- name: keep
INSERT OR REPLACE INTO turn (kind, key, queue, priority, due, reached) VALUES (?, ?, ?, ?, ?, ?)

-- name: forget
DELETE FROM turn WHERE kind = ? AND key = ? AND queue = ? AND priority = ?

-- name: forget_empty
-- Of lanes of which nobody waits any more.
DELETE FROM turn WHERE (kind, key, queue, priority) IN (
    SELECT t.kind, t.key, t.queue, t.priority FROM turn t
    WHERE CASE WHEN t.queue = '' THEN NOT EXISTS (SELECT 1 FROM parked p WHERE p.reason = t.kind AND p.key = t.key)
        ELSE NOT EXISTS (SELECT 1 FROM parked p WHERE p.reason = t.kind AND p.key = t.key AND p.queue = t.queue
            AND p.priority = t.priority) END
    LIMIT ?)
