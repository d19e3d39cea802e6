-- oldest: 4
-- Replays respect unique keys: a dead job whose key another job has meanwhile stays dead, or has its key again.

-- What was said of being unique (holdfast/core/unique_text.py), kept with the job, because by the time of a replay the key
-- may be another's. NULL where nothing was said, and for jobs of before.
ALTER TABLE holdfast.job ADD COLUMN unique_claim text;

-- take_seen_unique: as take_unique (0008), and only where the row is still the one that was looked at. Whose it is does
-- not tell: a job that was dead then may have been replayed since, and be in the way.
CREATE FUNCTION holdfast.take_seen_unique(
    _keys text[], _job_ids uuid[], _first_ats timestamptz[], _expires_ats timestamptz[], _befores text[]
) RETURNS SETOF text LANGUAGE plpgsql
SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    INSERT INTO holdfast.unique_key AS u (key, job_id, first_at, expires_at)
    SELECT t.key, t.job_id, t.first_at, t.expires_at
    FROM unnest(_keys, _job_ids, _first_ats, _expires_ats) AS t (key, job_id, first_at, expires_at) ORDER BY t.key
    ON CONFLICT (key) DO UPDATE
        SET job_id = excluded.job_id, first_at = excluded.first_at, expires_at = excluded.expires_at
        WHERE u.xmin::text = _befores[array_position(_job_ids, excluded.job_id)]
    RETURNING u.key;
END $$;

-- Whoever may take unique keys may take them so.
DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.unique_key'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.take_seen_unique TO %s', _role);
    END LOOP;
END $$;
