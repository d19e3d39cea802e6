-- oldest: 4
-- What only code and settings could say, operators can say as well: options of queues, figures of breakers, and routes.
-- NULL: nothing is said, and what each process is configured with holds.

ALTER TABLE holdfast.queue_setting ADD COLUMN concurrency int4, ADD COLUMN retry_budget float8,
    ADD COLUMN bypass_priority int2;

CREATE TABLE holdfast.breaker_setting (
    name        text PRIMARY KEY,
    failures    int4,
    window_s    float8,
    open_for_s  float8
);

-- Where jobs go by the names of their tasks; patterns as in holdfast/core/routing.py.
CREATE TABLE holdfast.route (
    pattern   text PRIMARY KEY,
    queue     text,
    priority  int2
);

DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.rule'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT SELECT ON holdfast.breaker_setting, holdfast.route TO %s', _role);
    END LOOP;
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.rule'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON holdfast.breaker_setting, holdfast.route TO %s', _role);
    END LOOP;
END $$;
