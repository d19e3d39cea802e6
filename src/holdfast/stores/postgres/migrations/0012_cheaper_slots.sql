-- oldest: 4
-- What 0011 has made, with less work for the server.

-- take_slots: as before (0011). Which numbers are free is only asked where any is taken: one by one where these are few.
CREATE OR REPLACE FUNCTION holdfast.take_slots(_ids uuid[], _kinds text[], _keys text[], _sizes int4[], _strict bool)
RETURNS bool LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
DECLARE
    _start int4 := floor(random() * 1000000);
BEGIN
    WITH asked AS (
        SELECT a.kind, a.key, array_agg(a.id) AS ids, count(*)::int4 AS many,
               CASE WHEN _strict THEN min(a.size) ELSE max(a.size) END AS size
        FROM unnest(_ids, _kinds, _keys, _sizes) AS a (id, kind, key, size) GROUP BY a.kind, a.key
    ), room AS MATERIALIZED (
        SELECT a.*, h.held, least(a.size, 2 * (h.held + a.many) + 16)::int4 AS width
        FROM asked a CROSS JOIN LATERAL (
            SELECT count(*) FROM holdfast.slot s WHERE s.key = a.key AND s.kind = a.kind) AS h (held)
    ), given AS (
        SELECT r.kind, r.key, unnest(r.ids) AS id, unnest(CASE
                   WHEN r.held = 0 AND r.many = 1 THEN ARRAY[1 + _start % r.width]
                   WHEN r.held = 0 THEN ARRAY(SELECT 1 + (_start + generate_series(1, r.many)) % r.width)
                   WHEN r.held <= 100 THEN ARRAY(
                       SELECT n.number FROM (SELECT 1 + (_start + generate_series(1, r.width)) % r.width) AS n (number)
                       WHERE NOT EXISTS (SELECT 1 FROM holdfast.slot s
                                         WHERE s.key = r.key AND s.kind = r.kind AND s.number = n.number)
                       LIMIT r.many)
                   ELSE ARRAY(
                       SELECT n.number FROM (
                           SELECT generate_series(1, r.width)
                           EXCEPT SELECT s.number FROM holdfast.slot s WHERE s.key = r.key AND s.kind = r.kind
                       ) AS n (number) ORDER BY (n.number + _start) % r.width LIMIT r.many)
               END) AS number
        FROM room r WHERE NOT EXISTS (SELECT 1 FROM room x WHERE x.held + x.many > x.size)
    )
    INSERT INTO holdfast.slot (job_id, kind, key, number)
    SELECT g.id, g.kind, g.key, g.number FROM given g ORDER BY g.kind COLLATE "C", g.key COLLATE "C", g.number;
    RETURN FOUND;
EXCEPTION WHEN unique_violation OR not_null_violation THEN
    RETURN false;
END $$;

-- free_slots: as before (0011).
CREATE OR REPLACE FUNCTION holdfast.free_slots(_job_ids uuid[]) RETURNS bool LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
DECLARE
    _held tid[] := '{}';
    _kinds text[];
    _keys text[];
BEGIN
    IF EXISTS (SELECT 1 FROM holdfast.gate) THEN
        _held := ARRAY(SELECT x.ctid FROM (
                           SELECT DISTINCT s.kind, s.key FROM holdfast.slot s WHERE s.job_id = ANY (_job_ids)
                       ) f JOIN holdfast.gate x ON x.kind = f.kind AND x.key = ANY (ARRAY[f.key])
                       ORDER BY f.kind, f.key FOR NO KEY UPDATE OF x);
    END IF;
    WITH freed AS (
        DELETE FROM holdfast.slot WHERE ctid = ANY (ARRAY(
            SELECT s.ctid FROM holdfast.slot s WHERE s.job_id = ANY (_job_ids)))
        RETURNING kind, key
    )
    SELECT array_agg(f.kind), array_agg(f.key) INTO _kinds, _keys FROM freed f;
    IF _keys IS NULL OR NOT EXISTS (SELECT 1 FROM holdfast.gate) THEN
        RETURN false;
    END IF;
    SELECT array_agg(f.kind), array_agg(f.key) INTO _kinds, _keys
    FROM (SELECT DISTINCT u.kind, u.key FROM unnest(_kinds, _keys) AS u (kind, key)) f;
    IF EXISTS (SELECT 1 FROM unnest(_kinds, _keys) AS f (kind, key)
               JOIN holdfast.gate x ON x.kind = f.kind AND x.key = ANY (ARRAY[f.key]) WHERE x.ctid <> ALL (_held)) THEN
        RAISE EXCEPTION 'somebody has begun to wait meanwhile' USING ERRCODE = '40001';
    END IF;
    RETURN EXISTS (SELECT 1 FROM holdfast.look_after(_kinds, _keys, true) l WHERE l.waited);
END $$;
