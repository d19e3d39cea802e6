-- Unique keys: who has one, taken in the transaction of the insert.

-- name: holder
SELECT u.job_id,
       coalesce(d.state, CASE WHEN x.job_id IS NOT NULL THEN 'dead' WHEN a.job_id IS NOT NULL THEN 'running'
                              WHEN r.job_id IS NOT NULL THEN 'ready' WHEN t.job_id IS NOT NULL THEN 'scheduled'
                              WHEN p.job_id IS NOT NULL THEN 'parked' WHEN b.job_id IS NOT NULL THEN 'blocked' END),
       j.created_at, u.first_at, u.expires_at,
       t.job_id IS NOT NULL AND EXISTS (SELECT 1 FROM attempt y WHERE y.job_id = u.job_id)
FROM unique_key u LEFT JOIN job j ON j.id = u.job_id
LEFT JOIN done d ON d.job_id = u.job_id LEFT JOIN dead x ON x.job_id = u.job_id
LEFT JOIN active a ON a.job_id = u.job_id LEFT JOIN ready r ON r.job_id = u.job_id
LEFT JOIN timer t ON t.job_id = u.job_id LEFT JOIN parked p ON p.job_id = u.job_id
LEFT JOIN blocked b ON b.job_id = u.job_id
WHERE u.key = ?

-- name: take
INSERT OR REPLACE INTO unique_key (key, job_id, first_at, expires_at) VALUES (?, ?, ?, ?)

-- name: dead
SELECT j.unique_claim, j.created_at FROM dead x JOIN job j ON j.id = x.job_id
WHERE x.job_id = ? AND j.unique_claim IS NOT NULL

-- name: claim_anew
UPDATE job SET unique_claim = ? WHERE id = ?

-- name: give_up
DELETE FROM unique_key WHERE key = ? AND job_id = ?

-- name: drop_passed
DELETE FROM unique_key WHERE key IN (SELECT key FROM unique_key WHERE expires_at <= ? LIMIT ?)

-- name: some
-- From a place in the order of the key on, so that every sweep does a bounded part of the work.
SELECT u.key, u.expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = u.job_id) FROM unique_key u
WHERE u.key > ? ORDER BY u.key LIMIT ?

-- name: drop
DELETE FROM unique_key WHERE key = ?

-- name: said
SELECT unique_claim FROM job WHERE id = ? AND unique_claim IS NOT NULL

-- name: note_cancelled
-- A key whose window outlasts a job that was cancelled: its time with the sign changed says so (stores/judging.py).
UPDATE unique_key SET first_at = -first_at WHERE key = ? AND job_id = ? AND expires_at > ? AND first_at > 0
