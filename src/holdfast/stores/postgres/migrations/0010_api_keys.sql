-- oldest: 4
-- Keys of the HTTP API. Of their secrets only hashes are here.
CREATE TABLE holdfast.api_key (
    id          text PRIMARY KEY,
    name        text NOT NULL,
    scopes      text[] NOT NULL,
    queues      text[],
    tenant      text,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz,
    used_at     timestamptz,
    failed_at   timestamptz,
    rotations   int4 NOT NULL DEFAULT 0,
    digest      bytea NOT NULL,
    old_digest  bytea,
    old_until   timestamptz
);

-- Whoever reads finds keys; whoever serves producers, and does no jobs, notes their use and who does what; and whoever
-- decides makes and revokes them.
DO $$
DECLARE
    _role regrole;
    _may text[];
BEGIN
    FOR _role, _may IN
        SELECT a.grantee::regrole, array_agg(c.relname || ' ' || a.privilege_type)
        FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid IN ('holdfast.job'::regclass, 'holdfast.active'::regclass, 'holdfast.queue_setting'::regclass)
          AND a.grantee <> 0
        GROUP BY a.grantee
    LOOP
        IF 'job SELECT' = ANY (_may) THEN
            EXECUTE format('GRANT SELECT ON holdfast.api_key TO %s', _role);
        END IF;
        IF 'job INSERT' = ANY (_may) AND NOT 'active INSERT' = ANY (_may) THEN
            EXECUTE format('GRANT INSERT ON holdfast.setting_change TO %s', _role);
            EXECUTE format('GRANT UPDATE (used_at, failed_at) ON holdfast.api_key TO %s', _role);
        END IF;
        IF 'queue_setting INSERT' = ANY (_may) THEN
            EXECUTE format('GRANT INSERT, UPDATE ON holdfast.api_key TO %s', _role);
        END IF;
    END LOOP;
END $$;
