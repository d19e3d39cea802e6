-- Reports on gates. Never used for decisions.

-- name: in_use
-- Places that somebody holds, waits at, or has lately spent of.
WITH RECURSIVE kind (kind) AS (VALUES ('limit'), ('rate'), ('breaker'), ('paused')),
waited (kind, key) AS (
    SELECT k.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = k.kind) FROM kind k
    UNION ALL
    SELECT w.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = w.kind AND p.key > w.key) FROM waited w
    WHERE w.key IS NOT NULL LIMIT :most
),
taken (kind, key) AS (
    SELECT k.kind, (SELECT min(s.key) FROM slot s WHERE s.kind = k.kind) FROM kind k
    UNION ALL
    SELECT t.kind, (SELECT min(s.key) FROM slot s WHERE s.kind = t.kind AND s.key > t.key) FROM taken t
    WHERE t.key IS NOT NULL LIMIT :most
)
SELECT kind, key FROM (
    SELECT kind, key FROM waited WHERE key IS NOT NULL
    UNION SELECT kind, key FROM taken WHERE key IS NOT NULL
    UNION SELECT * FROM (SELECT kind, key FROM gate WHERE full_at > :now LIMIT :limit)
) ORDER BY kind, key LIMIT :limit

-- name: gate
SELECT (SELECT count(*) FROM slot s WHERE s.kind = ?1 AND s.key = ?2),
       (SELECT count(*) FROM (SELECT 1 FROM parked p WHERE p.reason = ?1 AND p.key = ?2 LIMIT ?3)),
       (SELECT g.full_at FROM gate g WHERE g.kind = ?1 AND g.key = ?2 AND g.full_at > ?4)

-- name: of_job
SELECT j.gates,
       EXISTS (SELECT 1 FROM ready r WHERE r.job_id = j.id AND r.losses >= ?2)
       OR EXISTS (SELECT 1 FROM timer t WHERE t.job_id = j.id AND t.losses >= ?2)
       OR EXISTS (SELECT 1 FROM parked p WHERE p.job_id = j.id AND p.losses >= ?2),
       j.queue, j.priority
FROM job j WHERE j.id = ?1

-- name: waits_for
-- Members that have not arrived; a job that has been pruned, or never was, counts as arrived when it was enqueued.
SELECT m.job_id FROM member m WHERE m.join_id = ?1
AND NOT EXISTS (SELECT 1 FROM arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
ORDER BY m.job_id LIMIT ?2

-- name: ended_lately
-- Bounded: the newest so many endings of all lanes are looked at.
SELECT count(*) FROM (
    SELECT d.job_id FROM done d WHERE d.state = 'succeeded' AND d.ended_at > ?1 ORDER BY d.ended_at DESC LIMIT ?2
) d JOIN job j ON j.id = d.job_id WHERE j.queue = ?3 AND j.priority = ?4
