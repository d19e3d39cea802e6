-- Keys of the HTTP API. Of their secrets only hashes are here. Scopes and queues are JSON lists.
CREATE TABLE api_key (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    scopes      TEXT NOT NULL,
    queues      TEXT,
    tenant      TEXT,
    created_at  REAL NOT NULL,
    expires_at  REAL,
    revoked_at  REAL,
    used_at     REAL,
    failed_at   REAL,
    rotations   INTEGER NOT NULL DEFAULT 0,
    digest      BLOB NOT NULL,
    old_digest  BLOB,
    old_until   REAL
) WITHOUT ROWID;
