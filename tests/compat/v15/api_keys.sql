-- Keys of the HTTP API.

-- name: add
INSERT INTO holdfast.api_key (id, name, scopes, queues, tenant, created_at, expires_at, digest)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING RETURNING true

-- name: some
SELECT id, name, scopes, created_at, queues, tenant, expires_at, revoked_at, used_at, failed_at, rotations, digest,
       old_digest, old_until
FROM holdfast.api_key WHERE $1::text[] IS NULL OR id = ANY ($1) ORDER BY created_at DESC, id

-- name: one
-- For a change: nobody else changes it until we commit.
SELECT id, name, scopes, created_at, queues, tenant, expires_at, revoked_at, used_at, failed_at, rotations, digest,
       old_digest, old_until
FROM holdfast.api_key WHERE id = $1 FOR UPDATE

-- name: rotate
UPDATE holdfast.api_key SET digest = $2, old_digest = digest, old_until = $3, rotations = rotations + 1 WHERE id = $1

-- name: revoke
UPDATE holdfast.api_key SET revoked_at = $2 WHERE id = $1

-- name: note_uses
-- Processes may note the same keys at once: each locks them in the same order.
WITH noted AS MATERIALIZED (
    SELECT k.id FROM holdfast.api_key k WHERE k.id = ANY ($1) ORDER BY k.id FOR NO KEY UPDATE
)
UPDATE holdfast.api_key k SET used_at = greatest(k.used_at, n.used_at), failed_at = greatest(k.failed_at, n.failed_at)
FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) AS n (id, used_at, failed_at)
WHERE k.id = n.id AND k.id IN (SELECT id FROM noted)
