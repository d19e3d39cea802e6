-- Gates: what is taken of them, and when to look at those who wait there.

-- name: rules
SELECT what, name, size, count, per_s, burst FROM rule

-- name: held
-- Of one kind, by key, where any is.
SELECT s.key, count(*) FROM json_each(?2) e CROSS JOIN slot s ON s.kind = ?1 AND s.key = e.value GROUP BY s.key

-- name: rate
-- When its bucket will be full; how many turns are kept there, and how many of them are not overdue.
SELECT (SELECT full_at FROM gate WHERE kind = 'rate' AND key = ?1), count(*),
       count(*) FILTER (WHERE kept_at BETWEEN ?2 AND ?3)
FROM slot WHERE kind = 'rate' AND key = ?1

-- name: slots_of
SELECT kind, key FROM slot WHERE job_id = ?

-- name: take
INSERT INTO slot (kind, key, job_id, kept_at) VALUES (?1, ?2, ?3, CASE ?1 WHEN 'rate' THEN ?4 END)
ON CONFLICT DO UPDATE SET kept_at = excluded.kept_at

-- name: free
DELETE FROM slot WHERE job_id = ? RETURNING kind, key

-- name: forget
DELETE FROM slot WHERE job_id = ?

-- name: free_reserved
-- Of jobs that wait in a queue: whoever claims from it takes them again.
DELETE FROM slot WHERE job_id IN (SELECT job_id FROM ready WHERE queue = ?) RETURNING kind, key

-- name: kept_in
-- Slots of jobs that wait in some lanes of a queue.
SELECT s.job_id, s.kind, s.key, j.gates
FROM slot s JOIN ready r ON r.job_id = s.job_id JOIN job j ON j.id = s.job_id
WHERE r.queue = ?1 AND r.priority IN (SELECT value FROM json_each(?2))

-- name: free_one
DELETE FROM slot WHERE job_id = ? AND kind = ? AND key = ?

-- name: spend
INSERT INTO gate (kind, key, full_at) VALUES ('rate', ?, ?) ON CONFLICT DO UPDATE SET full_at = excluded.full_at

-- name: make_due
-- Nobody has to look where nobody waits.
INSERT INTO gate (kind, key, due_at) SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM parked WHERE reason = ?1 AND key = ?2)
ON CONFLICT DO UPDATE SET due_at = min(coalesce(due_at, excluded.due_at), excluded.due_at)

-- name: make_all_due
WITH RECURSIVE kind (kind) AS (VALUES ('limit'), ('rate'), ('breaker'), ('paused')),
waited (kind, key) AS (
    SELECT k.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = k.kind) FROM kind k
    UNION ALL
    SELECT w.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = w.kind AND p.key > w.key) FROM waited w
    WHERE w.key IS NOT NULL
)
INSERT INTO gate (kind, key, due_at) SELECT kind, key, ? FROM waited WHERE key IS NOT NULL
ON CONFLICT DO UPDATE SET due_at = min(coalesce(due_at, excluded.due_at), excluded.due_at)

-- name: park
INSERT INTO parked (reason, key, tag, seq, job_id, attempt, losses, crashes, priority, tenant, line, parked_at, queue)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: unpark
DELETE FROM parked WHERE job_id = ?

-- name: park_elsewhere
UPDATE parked SET reason = ?, key = ?, seq = ?, priority = ?, tenant = ?, line = ? WHERE job_id = ?

-- name: newer_at
-- Of those who hold a slot of a limit, or wait for one, the newest that was enqueued after a job; not one that was asked to
-- stop.
SELECT o.job_id FROM (
    SELECT job_id FROM slot WHERE kind = :kind AND key = :key UNION ALL SELECT job_id FROM parked WHERE reason = :kind AND key = :key
) o JOIN job j ON j.id = o.job_id JOIN job me ON me.id = :job LEFT JOIN active a ON a.job_id = o.job_id
WHERE a.cancel_reason IS NULL AND (j.created_at, j.id) > (me.created_at, me.id)
ORDER BY j.created_at DESC, j.id DESC LIMIT 1

-- name: others_at
-- Those who hold a slot of a limit, and those who wait for one, but for one job.
SELECT job_id FROM slot WHERE kind = :kind AND key = :key AND job_id != :job
UNION ALL SELECT job_id FROM parked WHERE reason = :kind AND key = :key AND job_id != :job
