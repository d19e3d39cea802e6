-- sweep: the net under everything else. On a healthy store each of these finds nothing but old keys.

-- name: drop_keys
DELETE FROM holdfast.idempotency_key WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.idempotency_key WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING true

-- name: stale_limits
-- A slot belongs to a job that runs, or that was given it and is about to: somebody claims from its queue.
SELECT DISTINCT key FROM (
    SELECT s.key FROM holdfast.slot s
    WHERE NOT EXISTS (SELECT 1 FROM holdfast.active a WHERE a.job_id = s.job_id)
        AND NOT EXISTS (
            SELECT 1 FROM holdfast.ready r WHERE r.job_id = s.job_id
                AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting q WHERE q.queue = r.queue AND q.paused)
                AND (NOT EXISTS (SELECT 1 FROM holdfast.worker)
                     OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}' OR r.queue = ANY (w.queues)))) LIMIT $1) s

-- name: drop_stale_slots
-- Looked at again, now that nobody else can take or free one of this limit.
DELETE FROM holdfast.slot s WHERE s.key = $1
    AND NOT EXISTS (SELECT 1 FROM holdfast.active a WHERE a.job_id = s.job_id)
    AND NOT EXISTS (
        SELECT 1 FROM holdfast.ready r WHERE r.job_id = s.job_id
            AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting q WHERE q.queue = r.queue AND q.paused)
            AND (NOT EXISTS (SELECT 1 FROM holdfast.worker)
                 OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}' OR r.queue = ANY (w.queues))))
RETURNING true

-- name: waiting_keys
-- Limits that somebody waits for although there is room, however many others are rightly waited for.
WITH RECURSIVE waited AS (
    (SELECT key FROM holdfast.parked WHERE reason = 'limit' ORDER BY key LIMIT 1)
    UNION ALL
    SELECT n.key FROM waited w CROSS JOIN LATERAL (
        SELECT x.key FROM holdfast.parked x WHERE x.reason = 'limit' AND x.key > w.key ORDER BY x.key LIMIT 1) n
)
SELECT k.key FROM waited k CROSS JOIN LATERAL (
    SELECT j.limit_size FROM holdfast.parked p LEFT JOIN holdfast.job j ON j.id = p.job_id
    WHERE p.reason = 'limit' AND p.key = k.key ORDER BY p.seq LIMIT 1) oldest
WHERE oldest.limit_size IS NULL OR oldest.limit_size > (SELECT count(*) FROM holdfast.slot s WHERE s.key = k.key)
LIMIT $1

-- name: reserved_limits
-- Of which jobs that wait in this queue were given slots.
SELECT DISTINCT s.key FROM holdfast.slot s JOIN holdfast.ready r ON r.job_id = s.job_id WHERE r.queue = $1

-- name: uncounted
UPDATE holdfast.arrival SET counted = true WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.arrival WHERE NOT counted LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING join_id

-- name: releasable
-- Blocked jobs all of whose members have ended, whatever the count says; held here, and by nobody else.
SELECT b.job_id FROM holdfast.blocked b WHERE NOT EXISTS (
    SELECT 1 FROM holdfast.member m JOIN holdfast.job j ON j.id = m.job_id WHERE m.join_id = b.job_id
        AND NOT EXISTS (SELECT 1 FROM holdfast.arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM holdfast.done d WHERE d.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM holdfast.dead d WHERE d.job_id = m.job_id)
) ORDER BY b.job_id LIMIT $1 FOR UPDATE SKIP LOCKED

-- name: alone
SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast.sweep', 0))

-- name: wrong_depths
-- What is counted against what is there, in one look, up to a limit: two numbers beyond it are taken for equal. A queue
-- whose rows go on beyond it while its count does not is told without a change: it is to be counted as a whole.
SELECT k.queue, CASE WHEN r.ready < $1 THEN r.ready - k.ready END AS change
FROM (
    SELECT queue, sum(ready)::int8 AS ready FROM (
        SELECT queue, ready FROM holdfast.depth UNION ALL SELECT queue, change FROM holdfast.depth_change
        UNION ALL SELECT queue, 0 FROM (
            WITH RECURSIVE lane AS (
                (SELECT queue FROM holdfast.ready ORDER BY queue LIMIT 1)
                UNION ALL
                SELECT n.queue FROM lane l CROSS JOIN LATERAL (
                    SELECT x.queue FROM holdfast.ready x WHERE x.queue > l.queue ORDER BY x.queue LIMIT 1) n
            ) SELECT queue FROM lane) there
    ) c GROUP BY queue
) k CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1 FROM holdfast.ready x WHERE x.queue = k.queue LIMIT $1) n) AS r (ready)
WHERE least(k.ready, $1) <> r.ready

-- name: recount
-- The same for one queue, to the end.
SELECT $1, (SELECT count(*) FROM holdfast.ready WHERE queue = $1)
         - (SELECT coalesce(sum(ready), 0) FROM holdfast.depth WHERE queue = $1)::int8
         - (SELECT coalesce(sum(change), 0) FROM holdfast.depth_change WHERE queue = $1)::int8
