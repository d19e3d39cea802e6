-- sweep: the net under everything else. On a healthy store each of these finds nothing but old keys.

-- name: drop_keys
DELETE FROM idempotency_key WHERE (tenant, key) IN (
    SELECT tenant, key FROM idempotency_key WHERE expires_at <= ? LIMIT ?)

-- name: stale_slots
-- A slot belongs to a job that runs, or that was given it and is about to: somebody claims from its queue.
DELETE FROM slot WHERE job_id IN (
    SELECT s.job_id FROM slot s
    WHERE NOT EXISTS (SELECT 1 FROM active a WHERE a.job_id = s.job_id)
        AND NOT EXISTS (
            SELECT 1 FROM ready r WHERE r.job_id = s.job_id
                AND NOT EXISTS (SELECT 1 FROM queue_setting q WHERE q.queue = r.queue AND q.paused)
                AND (NOT EXISTS (SELECT 1 FROM worker) OR EXISTS (
                    SELECT 1 FROM worker w WHERE w.queues = '[]'
                        OR EXISTS (SELECT 1 FROM json_each(w.queues) e WHERE e.value = r.queue)))) LIMIT ?)

-- name: waiting_keys
-- Limits that somebody waits for although there is room, however many others are rightly waited for.
WITH RECURSIVE waited (key) AS (
    SELECT min(key) FROM parked WHERE reason = 'limit'
    UNION ALL
    SELECT (SELECT min(p.key) FROM parked p WHERE p.reason = 'limit' AND p.key > w.key) FROM waited w
    WHERE w.key IS NOT NULL
)
SELECT k.key FROM waited k WHERE k.key IS NOT NULL AND (
    SELECT j.id IS NULL OR j.limit_size > (SELECT count(*) FROM slot s WHERE s.key = k.key)
    FROM parked p LEFT JOIN job j ON j.id = p.job_id
    WHERE p.reason = 'limit' AND p.key = k.key ORDER BY p.seq LIMIT 1)
LIMIT ?

-- name: releasable
-- Blocked jobs all of whose members have ended, whatever the count says.
SELECT b.job_id FROM blocked b WHERE NOT EXISTS (
    SELECT 1 FROM member m JOIN job j ON j.id = m.job_id WHERE m.join_id = b.job_id
        AND NOT EXISTS (SELECT 1 FROM arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM done d WHERE d.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.job_id = m.job_id)
) LIMIT ?

-- name: fix_depths
UPDATE depth SET ready = (SELECT count(*) FROM ready r WHERE r.queue = depth.queue)
WHERE ready != (SELECT count(*) FROM ready r WHERE r.queue = depth.queue)
