-- Keys of the HTTP API.

-- name: add
INSERT OR IGNORE INTO api_key (id, name, scopes, queues, tenant, created_at, expires_at, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: all
SELECT id, name, scopes, queues, tenant, created_at, expires_at, revoked_at, used_at, failed_at, rotations, digest,
       old_digest, old_until
FROM api_key ORDER BY created_at DESC, id

-- name: one
SELECT id, name, scopes, queues, tenant, created_at, expires_at, revoked_at, used_at, failed_at, rotations, digest,
       old_digest, old_until
FROM api_key WHERE id = ?

-- name: rotate
UPDATE api_key SET digest = ?, old_digest = digest, old_until = ?, rotations = rotations + 1 WHERE id = ?

-- name: revoke
UPDATE api_key SET revoked_at = ? WHERE id = ?

-- name: note_use
UPDATE api_key SET used_at = max(coalesce(used_at, ?1), coalesce(?1, used_at)),
    failed_at = max(coalesce(failed_at, ?2), coalesce(?2, failed_at))
WHERE id = ?3
