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
