-- insert_jobs: an id is inserted once; its place (ready, timer or blocked) comes in the same transaction.

-- name: holder
-- Who holds this key now; a key whose window has passed is free.
SELECT job_id, fingerprint FROM idempotency_key WHERE tenant = ? AND key = ? AND expires_at > ?

-- name: take_key
INSERT OR REPLACE INTO idempotency_key (tenant, key, fingerprint, job_id, expires_at) VALUES (?, ?, ?, ?, ?)

-- name: exists
SELECT 1 FROM job WHERE id = ?

-- name: body
INSERT INTO job (id, task, queue, priority, tenant, payload, options, max_attempts, tags, metadata, headers,
                 expires_at, created_at, gates, unique_claim)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: timer
INSERT INTO timer (due_at, job_id, attempt, losses, crashes) VALUES (?, ?, 0, 0, 0)

-- name: expiry
INSERT INTO expiry (expires_at, job_id) VALUES (?, ?)

-- name: is_live
SELECT 1 FROM job WHERE id = :id
    AND NOT EXISTS (SELECT 1 FROM done WHERE job_id = :id)
    AND NOT EXISTS (SELECT 1 FROM dead WHERE job_id = :id)

-- name: member
INSERT INTO member (job_id, join_id) VALUES (?, ?)

-- name: blocked
INSERT INTO blocked (job_id, remaining, due_at) VALUES (?, ?, ?)
