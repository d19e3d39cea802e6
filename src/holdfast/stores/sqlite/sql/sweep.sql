-- sweep: the net under everything else. On a healthy store each of these finds nothing but old keys.

-- name: drop_keys
DELETE FROM idempotency_key WHERE (tenant, key) IN (
    SELECT tenant, key FROM idempotency_key WHERE expires_at <= ? LIMIT ?)

-- name: releasable
-- Blocked jobs all of whose members have ended, whatever the count says.
SELECT b.job_id FROM blocked b WHERE NOT EXISTS (
    SELECT 1 FROM member m JOIN job j ON j.id = m.job_id WHERE m.join_id = b.job_id
        AND NOT EXISTS (SELECT 1 FROM arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM done d WHERE d.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.job_id = m.job_id)
) LIMIT ?

-- name: fix_depths
UPDATE depth SET ready = (SELECT count(*) FROM ready r WHERE r.queue = depth.queue),
                 parked = (SELECT count(*) FROM parked p WHERE p.queue = depth.queue)
WHERE ready != (SELECT count(*) FROM ready r WHERE r.queue = depth.queue)
    OR parked != (SELECT count(*) FROM parked p WHERE p.queue = depth.queue)
