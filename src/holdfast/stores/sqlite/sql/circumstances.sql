-- What a report about one waiting job needs beside its row.

-- name: job
SELECT j.gates, j.queue, j.priority,
       coalesce(r.losses, t.losses, p.losses, a.losses, 0)
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

-- name: ended_lately
SELECT count(*) FROM (
    SELECT job_id FROM done WHERE state = 'succeeded' AND ended_at > ? ORDER BY ended_at DESC LIMIT ?) d
JOIN job j ON j.id = d.job_id WHERE j.queue = ? AND j.priority = ?
