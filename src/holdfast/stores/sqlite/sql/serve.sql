-- serve_gates: gates that are due. Those who wait there are read as lines (lines.sql).

-- name: due
SELECT kind, key FROM gate WHERE due_at <= ? AND kind IN ('limit', 'rate', 'breaker', 'paused')
ORDER BY due_at, kind, key LIMIT ?

-- name: set_due
UPDATE gate SET due_at = ? WHERE kind = ? AND key = ?

-- name: next_due
SELECT due_at FROM gate g WHERE due_at < 250000000000.0
    AND EXISTS (SELECT 1 FROM parked p WHERE p.reason = g.kind AND p.key = g.key)
ORDER BY due_at LIMIT 1

-- name: is_served
-- Claimed from by somebody, or by nobody because there is no worker at all.
SELECT NOT EXISTS (SELECT 1 FROM queue_setting s WHERE s.queue = ?1 AND s.paused)
    AND (NOT EXISTS (SELECT 1 FROM worker) OR EXISTS (SELECT 1 FROM worker w WHERE w.queues = '[]'
        OR EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(w.queues) THEN w.queues END) e WHERE e.value = ?1)))

-- name: astray
-- Who stands behind the others of a line, of the first of all.
WITH RECURSIVE kind (kind) AS (VALUES ('limit'), ('rate'), ('breaker'), ('paused')),
waited (kind, key) AS (
    SELECT k.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = k.kind) FROM kind k
    UNION ALL
    SELECT w.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = w.kind AND p.key > w.key) FROM waited w
    WHERE w.key IS NOT NULL
)
SELECT p.job_id FROM waited w CROSS JOIN parked p
WHERE p.reason = w.kind AND p.key = w.key AND p.seq >= ? LIMIT ?

-- name: step_back
UPDATE parked SET seq = seq - ? WHERE job_id = ?

-- name: step_forward_in_lanes
-- Nobody stands behind the others of a lane: a program of an earlier version lets jobs go from where they wait without
-- taking off what puts them behind there. With tags it makes no difference.
UPDATE ready SET seq = seq - ?1 WHERE job_id IN (
    SELECT r.job_id FROM depth d CROSS JOIN json_each('[0,1,2,3,4,5,6,7,8,9]') p CROSS JOIN ready r
    WHERE r.queue = d.queue AND r.priority = p.value AND r.tag = 0 AND r.seq >= ?1 LIMIT ?2)

-- name: stale_slots
-- A slot belongs to a job that runs, or that was given it and is about to: somebody claims from its queue. A probe
-- belongs to one that runs.
DELETE FROM slot WHERE (kind, key, job_id) IN (
    SELECT s.kind, s.key, s.job_id FROM slot s
    WHERE NOT EXISTS (SELECT 1 FROM active a WHERE a.job_id = s.job_id)
        AND NOT EXISTS (
            SELECT 1 FROM ready r WHERE s.kind IN ('limit', 'rate') AND r.job_id = s.job_id
                AND NOT EXISTS (SELECT 1 FROM queue_setting q WHERE q.queue = r.queue AND q.paused)
                AND (NOT EXISTS (SELECT 1 FROM worker) OR EXISTS (
                    SELECT 1 FROM worker w WHERE w.queues = '[]'
                        OR EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(w.queues) THEN w.queues END) e
                            WHERE e.value = r.queue)))) LIMIT ?)
RETURNING kind, key

-- name: overlooked
-- Gates that somebody waits at although nothing may be in the way and nobody is to look, however many others are
-- rightly waited at. Of limits only the size is looked at, as the job has it or operators do: `serve` knows the rest.
WITH RECURSIVE kind (kind) AS (VALUES ('limit'), ('rate'), ('breaker'), ('paused')),
waited (kind, key) AS (
    SELECT k.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = k.kind) FROM kind k
    UNION ALL
    SELECT w.kind, (SELECT min(p.key) FROM parked p WHERE p.reason = w.kind AND p.key > w.key) FROM waited w
    WHERE w.key IS NOT NULL
)
SELECT w.kind, w.key FROM waited w WHERE w.key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM gate g WHERE g.kind = w.kind AND g.key = w.key AND g.due_at < 250000000000.0)
    AND CASE w.kind
        WHEN 'rate' THEN TRUE
        WHEN 'paused' THEN NOT EXISTS (SELECT 1 FROM rule r WHERE r.what || ':' || r.name = w.key)
        WHEN 'breaker' THEN NOT EXISTS (SELECT 1 FROM slot s WHERE s.kind = 'breaker' AND s.key = w.key)
            AND NOT EXISTS (SELECT 1 FROM breaker b WHERE b.name = w.key AND (b.held = 1
                OR (b.open_until > :now AND b.open_until < 250000000000.0)))
        ELSE (SELECT count(*) FROM slot s WHERE s.kind = 'limit' AND s.key = w.key) < coalesce((
            SELECT coalesce(
                (SELECT coalesce(
                    (SELECT r.size FROM rule r WHERE r.what = 'limit'
                        AND r.name = coalesce(nullif(json_extract(e.value, '$[3]'), ''), w.key)),
                    json_extract(e.value, '$[2]'))
                 FROM json_each(CASE WHEN json_valid(j.gates) THEN j.gates ELSE '[]' END) e
                 WHERE json_extract(e.value, '$[0]') = 'limit' AND json_extract(e.value, '$[1]') = w.key LIMIT 1),
                (SELECT r.size FROM rule r WHERE r.what = 'limit' AND r.name = w.key))
            FROM parked p LEFT JOIN job j ON j.id = p.job_id
            WHERE p.reason = 'limit' AND p.key = w.key ORDER BY p.seq LIMIT 1), 9e18)
        END
LIMIT :limit

-- name: forget_gates
-- Nobody is owed anything there: its bucket is full, and nobody is to look.
DELETE FROM gate WHERE (kind, key) IN (
    SELECT kind, key FROM gate WHERE due_at IS NULL AND (full_at IS NULL OR full_at <= ?) LIMIT ?)
