-- What a report about one waiting job needs beside its row.

-- name: job
SELECT j.gates, j.queue, j.priority,
       coalesce(r.losses, t.losses, p.losses, a.losses, 0), p.reason, p.key
FROM job j
LEFT JOIN ready r ON r.job_id = j.id LEFT JOIN timer t ON t.job_id = j.id
LEFT JOIN parked p ON p.job_id = j.id LEFT JOIN active a ON a.job_id = j.id
WHERE j.id = ?

-- name: waits_for
SELECT m.job_id FROM member m JOIN job j ON j.id = m.job_id WHERE m.join_id = ?1
    AND NOT EXISTS (SELECT 1 FROM arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
    AND NOT EXISTS (SELECT 1 FROM done d WHERE d.job_id = m.job_id)
    AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.job_id = m.job_id)
    AND EXISTS (SELECT 1 FROM blocked b WHERE b.job_id = m.join_id)
ORDER BY m.job_id LIMIT ?2

-- name: holds
SELECT kind, key FROM slot WHERE job_id = ?

-- name: line
SELECT reason, key, queue, priority, tenant, line, seq FROM parked WHERE job_id = ?

-- name: ahead_of_place
SELECT count(*) FROM (
    SELECT 1 FROM parked WHERE reason = ? AND key = ? AND queue = ? AND priority = ? AND line = 0 AND seq < ? LIMIT ?)

-- name: older
-- Of its tenant, whose jobs go by their places, each by the next of their tags.
SELECT count(*) FROM (
    SELECT 1 FROM parked INDEXED BY parked_by_tenant
    WHERE reason = ? AND key = ? AND queue = ? AND priority = ? AND tenant = ? AND line > 0 AND seq < ?
    LIMIT ?)

-- name: ahead_of_tag
SELECT count(*) FROM (
    SELECT 1 FROM parked WHERE reason = ?1 AND key = ?2 AND queue = ?3 AND priority = ?4 AND (line, seq) < (
        SELECT line, seq FROM parked WHERE reason = ?1 AND key = ?2 AND queue = ?3 AND priority = ?4 AND tenant = ?5 AND line > 0
        ORDER BY line LIMIT 1 OFFSET ?6)
    LIMIT ?7)

-- name: beside
-- Of other lanes: of other queues and of its own, before and after it in the index.
SELECT (SELECT count(*) FROM (SELECT 1 FROM parked WHERE reason = ?1 AND key = ?2 AND queue < ?3 LIMIT ?5))
     + (SELECT count(*) FROM (SELECT 1 FROM parked WHERE reason = ?1 AND key = ?2 AND queue > ?3 LIMIT ?5))
     + (SELECT count(*) FROM (
            SELECT 1 FROM parked WHERE reason = ?1 AND key = ?2 AND queue = ?3 AND priority < ?4 LIMIT ?5))
     + (SELECT count(*) FROM (
            SELECT 1 FROM parked WHERE reason = ?1 AND key = ?2 AND queue = ?3 AND priority > ?4 LIMIT ?5))

-- name: lately
-- From the newest rows of each kind, found by an index: bounded work, however many there are. Where there are more than
-- that, they are counted from the oldest one on. Dead letters are few, and in the order of their ids. Who was cancelled
-- is not counted: most of those have never run.
WITH succeeded AS MATERIALIZED (
    SELECT job_id, ended_at AS at FROM done WHERE state = 'succeeded' AND ended_at > :since
    ORDER BY ended_at DESC LIMIT :most
), dead_letters AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM dead ORDER BY job_id DESC LIMIT :most
), since AS MATERIALIZED (
    SELECT coalesce((SELECT CASE WHEN count(*) = :most THEN min(at) END FROM succeeded), :since) AS at
), ended AS MATERIALIZED (
    SELECT e.at, j.queue, j.priority, j.task, j.gates FROM (
        SELECT job_id, at FROM succeeded
        UNION ALL SELECT job_id, at FROM dead_letters WHERE started_at IS NOT NULL) e
    JOIN job j ON j.id = e.job_id WHERE e.at >= (SELECT at FROM since)
)
SELECT (SELECT count(*) FROM ended WHERE queue = :queue AND priority = :priority),
       (SELECT count(*) FROM ended
        WHERE instr(gates, :text) > 0 OR 'task:' || task = :limit OR 'queue:' || queue = :limit),
       (SELECT count(*) FROM ended WHERE at > :still_since)
       + (SELECT count(*) FROM active WHERE started_at > :still_since),
       (SELECT at FROM since)
