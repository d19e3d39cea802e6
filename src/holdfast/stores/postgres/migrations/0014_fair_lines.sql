-- oldest: 4
-- Those who wait at a gate go by turns of their lanes (holdfast/core/turns.py), and the tenants of a lane by tags that their
-- jobs bring (holdfast/core/tenancy.py: `line_tag`), each of them by the places of its jobs. 0: there are no tenants.

ALTER TABLE holdfast.parked ADD COLUMN priority int2, ADD COLUMN line int8 NOT NULL DEFAULT 0,
    ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT '';

-- What is known of the lanes of a gate from one look to the next, where anything has to be. `due`: when it is its turn, by
-- the gate's clock, which is here as well, as a lane without a name; NULL: it begins anew. `reached`: the largest tag that
-- was used.
CREATE TABLE holdfast.turn (
    kind      text NOT NULL,
    key       text NOT NULL,
    queue     text NOT NULL,
    priority  int2 NOT NULL,
    due       float8,
    reached   int8 NOT NULL,
    PRIMARY KEY (kind, key, queue, priority)
) WITH (fillfactor = 50);

-- The rule of core/tenancy.py (`line_tag`).
CREATE FUNCTION holdfast.line_tag(_reached int8, _head int8, _last int8, _cost int8) RETURNS int8
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(coalesce(_last + _cost, greatest(_reached, coalesce(_head, 0) - 1000000, 0) + _cost - 1),
                 (1::int8 << 60) - 1)
$$;

-- stand_in_line: the tag that somebody brings who begins to wait, or goes on to another gate or lane. As a trigger, so that
-- programs of earlier versions need not know of it. Whoever calls has the gate in hand. Bounds are given in two columns,
-- which one index alone has: whatever statistics say, no more is read.
CREATE FUNCTION holdfast.stand_in_line() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off
AS $$
DECLARE
    _priority int2;
    _tenant text;
    _whose text;
    _line int8;
    _last int8;
    _head int8;
    _reached int8;
BEGIN
    SELECT j.priority, j.tenant INTO _priority, _tenant FROM holdfast.job j WHERE j.id = NEW.job_id;
    NEW.priority := coalesce(_priority, NEW.priority, 5);
    NEW.tenant := '';
    NEW.line := 0;
    IF NEW.tag <= 0 OR NEW.reason NOT IN ('limit', 'rate', 'breaker', 'paused') THEN
        RETURN NEW;
    END IF;
    NEW.tenant := coalesce(_tenant, '');

    SELECT p.tenant, p.line INTO _whose, _line FROM holdfast.parked p
    WHERE p.reason = NEW.reason AND p.key = NEW.key AND p.queue = NEW.queue AND p.priority = NEW.priority AND p.line > 0
        AND p.line < (1::int8 << 60) AND (p.tenant, p.line) < (NEW.tenant, 1::int8 << 60)
    ORDER BY p.tenant DESC, p.line DESC LIMIT 1;
    IF _whose = NEW.tenant THEN
        _last := _line;
    ELSE
        SELECT p.line INTO _head FROM holdfast.parked p
        WHERE p.reason = NEW.reason AND p.key = NEW.key AND p.queue = NEW.queue AND p.priority = NEW.priority
        ORDER BY p.line, p.seq LIMIT 1;
        SELECT t.reached INTO _reached FROM holdfast.turn t
        WHERE t.kind = NEW.reason AND t.key = NEW.key AND t.queue = NEW.queue AND t.priority = NEW.priority
            AND t.reached BETWEEN 1 AND (1::int8 << 60) - 1;
    END IF;
    NEW.line := holdfast.line_tag(
        coalesce(_reached, 0), CASE WHEN _head BETWEEN 0 AND (1::int8 << 60) - 1 THEN _head END, _last,
        holdfast.cost_of((SELECT s.weight FROM holdfast.tenant_setting s WHERE s.tenant = NEW.tenant)));
    RETURN NEW;
END $$;

-- comes_last: whether what is set for a queue says that jobs of a priority go only when no others wait. What cannot be
-- read says nothing.
CREATE FUNCTION holdfast.comes_last(_priority int2, _weights text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((_weights::jsonb ->> CASE WHEN _priority >= 9 THEN 'critical' WHEN _priority >= 7 THEN 'high'
        WHEN _priority >= 5 THEN 'normal' WHEN _priority >= 2 THEN 'low' ELSE 'bulk' END)::float8 = 0, false);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN false;
END $$;

-- lanes_at: those of which somebody waits at a gate, one after the other, by the index. `many`: how many these are; of more
-- than `_most`, those that have just come and those that are due first, before others that nobody claims from.
CREATE FUNCTION holdfast.lanes_at(_kind text, _key text, _most int4)
RETURNS TABLE (queue text, priority int2, many int4, cut bool) LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    _queue text;
    _priority int2;
    _queues text[] := '{}';
    _priorities int2[] := '{}';
    _count int4;
BEGIN
    SELECT p.queue, p.priority INTO _queue, _priority FROM holdfast.parked p WHERE p.reason = _kind AND p.key = _key
    ORDER BY p.queue, p.priority LIMIT 1;
    WHILE _queue IS NOT NULL LOOP
        _queues := _queues || _queue;
        _priorities := _priorities || _priority;
        SELECT p.queue, p.priority INTO _queue, _priority FROM holdfast.parked p
        WHERE p.reason = _kind AND p.key = _key AND (p.queue, p.priority) > (_queue, _priority)
        ORDER BY p.queue, p.priority LIMIT 1;
    END LOOP;
    _count := cardinality(_queues);
    IF _count <= _most THEN
        RETURN QUERY SELECT l.queue, l.priority, _count, false FROM unnest(_queues, _priorities) AS l (queue, priority);
        RETURN;
    END IF;
    RETURN QUERY
    WITH served AS MATERIALIZED (
        SELECT DISTINCT unnest(w.queues) AS queue FROM holdfast.worker w
    ), paused AS MATERIALIZED (
        SELECT s.queue FROM holdfast.queue_setting s WHERE s.paused
    )
    SELECT l.queue, l.priority, _most, true FROM unnest(_queues, _priorities) AS l (queue, priority)
    LEFT JOIN holdfast.turn t ON t.kind = _kind AND t.key = _key AND t.queue = l.queue AND t.priority = l.priority
    LEFT JOIN holdfast.queue_setting s ON s.queue = l.queue
    ORDER BY l.queue IN (SELECT x.queue FROM paused x) OR NOT (
            l.queue IN (SELECT x.queue FROM served x) OR NOT EXISTS (SELECT 1 FROM holdfast.worker)
            OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}')),
        CASE WHEN s.weight = 0 THEN true WHEN s.weights IS NULL THEN false
            ELSE holdfast.comes_last(l.priority, s.weights) END,
        CASE WHEN t.due BETWEEN 0 AND 1e12 THEN t.due END NULLS FIRST
    LIMIT _most;
END $$;

-- Those who wait already, in the order of their places. Nobody stands behind the others of a line any more.
UPDATE holdfast.parked SET seq = seq % 4611686018427387904 WHERE seq >= 4611686018427387904;
UPDATE holdfast.parked p SET priority = coalesce(j.priority, 5),
    tenant = CASE WHEN p.tag > 0 THEN coalesce(j.tenant, '') ELSE '' END
FROM holdfast.parked x LEFT JOIN holdfast.job j ON j.id = x.job_id WHERE x.job_id = p.job_id;
UPDATE holdfast.parked p SET line = t.line FROM (
    SELECT w.job_id, sum(holdfast.cost_of(s.weight)) OVER (
               PARTITION BY w.reason, w.key, w.queue, w.priority, w.tenant ORDER BY w.seq)::int8 - 1 AS line
    FROM holdfast.parked w LEFT JOIN holdfast.tenant_setting s ON s.tenant = w.tenant
    WHERE w.tag > 0 AND w.reason IN ('limit', 'rate', 'breaker', 'paused')) t
WHERE t.job_id = p.job_id;
ALTER TABLE holdfast.parked ALTER COLUMN priority SET NOT NULL;
CREATE INDEX parked_in_line ON holdfast.parked (reason, key, queue, priority, line, seq);
-- Each is of use only to whoever asks in its words: else fresh statistics have all of a tenant's read, and sorted.
CREATE INDEX parked_by_tenant ON holdfast.parked (reason, key, queue, priority, tenant, seq) WHERE line >= 1;
CREATE INDEX parked_last ON holdfast.parked (reason, key, queue, priority, tenant, line)
    WHERE line > 0 AND line < (1::int8 << 60);

CREATE TRIGGER stand_in_line BEFORE INSERT ON holdfast.parked FOR EACH ROW
WHEN (NEW.tag > 0 OR NEW.priority IS NULL) EXECUTE FUNCTION holdfast.stand_in_line();
CREATE TRIGGER stand_in_another_line BEFORE UPDATE OF reason, key, queue, priority ON holdfast.parked FOR EACH ROW
EXECUTE FUNCTION holdfast.stand_in_line();

-- claim_judged: as before (0011); it knows the lanes of those whom it parks, and turns that were kept at rates for those
-- who run now are used. Those who wait there are looked at soon, unless we are told when.
CREATE OR REPLACE FUNCTION holdfast.claim_judged(
    _worker uuid, _now timestamptz, _leased uuid[], _attached bool[], _parked uuid[], _reasons text[], _keys text[],
    _gone uuid[], _slot_ids uuid[], _slot_kinds text[], _slot_keys text[], _slot_sizes int4[], _freed uuid[],
    _rates text[], _full_ats timestamptz[], _due_kinds text[], _due_keys text[], _due_ats timestamptz[], _depth_queues text[],
    _depth_changes int8[], _depth_parked int8[]
) RETURNS TABLE (job_id uuid, token int8) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _era int8 := holdfast.timeline();
BEGIN
    RETURN QUERY
    INSERT INTO holdfast.active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes,
                                 attached, queue)
    SELECT _era + nextval('holdfast.run'), r.seq, r.tag, _now, r.job_id, _worker, r.attempt + 1, r.priority, r.losses,
           r.crashes, l.attached, r.queue
    FROM unnest(_leased, _attached) AS l (id, attached) JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[l.id])
    RETURNING job_id, token;

    IF cardinality(_parked) > 0 THEN
        INSERT INTO holdfast.parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key,
                                     priority)
        SELECT r.seq, r.tag, _now, r.job_id, r.attempt, r.losses, r.crashes, r.attached, r.queue, p.reason, p.key,
               r.priority
        FROM unnest(_parked, _reasons, _keys) AS p (id, reason, key)
        JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[p.id]);
    END IF;

    DELETE FROM holdfast.ready r WHERE r.job_id = ANY (_leased || _parked || _gone);

    IF EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.job_id = ANY (_leased) AND s.kind = 'rate') THEN
        WITH used AS (
            DELETE FROM holdfast.slot s WHERE s.ctid = ANY (ARRAY(
                SELECT x.ctid FROM holdfast.slot x WHERE x.job_id = ANY (_leased) AND x.kind = 'rate')) RETURNING s.key
        )
        UPDATE holdfast.gate g SET due_at = least(g.due_at, _now) FROM used u
        WHERE g.kind = 'rate' AND g.key = ANY (ARRAY[u.key]) AND g.key <> ALL (_due_keys);
    END IF;

    INSERT INTO holdfast.depth_change (queue, change, parked)
    SELECT * FROM unnest(_depth_queues, _depth_changes, _depth_parked);

    IF cardinality(_slot_ids) > 0 THEN
        PERFORM holdfast.give_slots(_slot_ids, _slot_kinds, _slot_keys, _slot_sizes);
    END IF;
    IF cardinality(_rates) > 0 THEN
        UPDATE holdfast.gate g SET full_at = s.full_at FROM unnest(_rates, _full_ats) AS s (key, full_at)
        WHERE g.kind = 'rate' AND g.key = ANY (ARRAY[s.key]);
    END IF;
    IF cardinality(_due_kinds) > 0 THEN
        UPDATE holdfast.gate g SET due_at = least(g.due_at, d.due_at)
        FROM unnest(_due_kinds, _due_keys, _due_ats) AS d (kind, key, due_at)
        WHERE g.kind = d.kind AND g.key = ANY (ARRAY[d.key]);
    END IF;
    IF cardinality(_freed) > 0 THEN
        WITH freed AS (
            DELETE FROM holdfast.slot s WHERE s.job_id = ANY (_freed) RETURNING s.kind, s.key
        )
        UPDATE holdfast.gate g SET due_at = _now, freed = true FROM freed f
        WHERE g.kind = f.kind AND g.key = ANY (ARRAY[f.key])
            AND (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key
                ORDER BY p.seq LIMIT 1) IS NOT NULL;
    END IF;
END $$;

-- When a turn at a rate was kept for one who was let go.
ALTER TABLE holdfast.slot ADD COLUMN kept_at timestamptz;

-- is_lined: whether anybody waits there of a lane that does not come last.
CREATE FUNCTION holdfast.is_lined(_kind text, _key text) RETURNS bool LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    _queue text;
    _priority int2;
BEGIN
    SELECT p.queue, p.priority INTO _queue, _priority FROM holdfast.parked p WHERE p.reason = _kind AND p.key = _key
    ORDER BY p.queue, p.priority LIMIT 1;
    WHILE _queue IS NOT NULL LOOP
        IF NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = _queue
                       AND (s.weight = 0 OR holdfast.comes_last(_priority, s.weights))) THEN
            RETURN true;
        END IF;
        SELECT p.queue, p.priority INTO _queue, _priority FROM holdfast.parked p
        WHERE p.reason = _kind AND p.key = _key AND (p.queue, p.priority) > (_queue, _priority)
        ORDER BY p.queue, p.priority LIMIT 1;
    END LOOP;
    RETURN false;
END $$;

-- hold_gates: as before (0008); of rates it also tells how many turns are kept there, those that are not overdue
-- (TURN_KEPT_S in core/gates.py) and the others in one number; and, for a claim, whether somebody waits. The number is larger
-- than any of slots: programs of earlier versions pass it over.
CREATE OR REPLACE FUNCTION holdfast.hold_gates(
    _limits text[], _rates text[], _breakers text[], _pauses text[], _job_ids uuid[], _claiming bool, _said text
) RETURNS TABLE (
    job_id uuid, kind text, key text, held int8, full_at timestamptz, recent float8[], open_until timestamptz,
    is_held bool, now timestamptz
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
BEGIN
    -- Those that are there are locked, and not changed.
    INSERT INTO holdfast.gate AS x (kind, key)
    SELECT g.kind, g.key FROM (
        SELECT 'limit', unnest(_limits) UNION ALL SELECT 'rate', unnest(_rates)
        UNION ALL SELECT 'breaker', unnest(_breakers) UNION ALL SELECT 'paused', unnest(_pauses)
    ) AS g (kind, key) ORDER BY g.kind, g.key
    ON CONFLICT (kind, key) DO UPDATE SET full_at = x.full_at WHERE false;
    -- Statements of their own, which see what those have committed for whom we have waited.
    IF _claiming AND holdfast.said() IS DISTINCT FROM _said THEN
        RAISE EXCEPTION 'an operator has spoken meanwhile' USING ERRCODE = '40001';
    END IF;
    _now := holdfast.clock();
    RETURN QUERY SELECT NULL::uuid, NULL::text, NULL::text, NULL::int8, NULL::timestamptz, NULL::float8[],
                        NULL::timestamptz, NULL::bool, _now;
    IF cardinality(_job_ids) > 0 THEN
        RETURN QUERY SELECT s.job_id, s.kind, s.key, NULL::int8, NULL::timestamptz, NULL::float8[], NULL::timestamptz,
                            NULL::bool, NULL::timestamptz
        FROM unnest(_job_ids) AS a (id) JOIN holdfast.slot s ON s.job_id = ANY (ARRAY[a.id]);
    END IF;
    IF cardinality(_limits) > 0 THEN
        RETURN QUERY SELECT NULL::uuid, 'limit', g.key, c.held, NULL::timestamptz, NULL::float8[], NULL::timestamptz,
                            NULL::bool, NULL::timestamptz
        FROM unnest(_limits) AS g (key) CROSS JOIN LATERAL (
            SELECT count(*) FROM holdfast.slot s WHERE s.key = g.key AND s.kind = 'limit') AS c (held) WHERE c.held > 0;
    END IF;
    IF _claiming AND EXISTS (SELECT 1 FROM holdfast.gate d WHERE d.due_at <= _now AND d.freed) THEN
        RETURN QUERY SELECT NULL::uuid, 'limit', g.key, 2147483647::int8, NULL::timestamptz, NULL::float8[],
                            NULL::timestamptz, NULL::bool, NULL::timestamptz
        FROM unnest(_limits) AS g (key) JOIN holdfast.gate d ON d.kind = 'limit' AND d.key = ANY (ARRAY[g.key])
        WHERE d.freed;
    END IF;
    IF cardinality(_rates) > 0 THEN
        RETURN QUERY SELECT NULL::uuid, 'rate', g.key, (
                SELECT (1 + t.turns - t.fresh << 32) + t.fresh FROM (
                    SELECT count(*) AS turns, count(*) FILTER (WHERE s.kept_at
                        BETWEEN _now - interval '0.1 second' AND _now + interval '1 second') AS fresh
                    FROM holdfast.slot s WHERE s.key = g.key AND s.kind = 'rate') t
                WHERE t.turns > 0),
            x.full_at, NULL::float8[], NULL::timestamptz, _claiming AND holdfast.is_lined('rate', g.key), NULL::timestamptz
        FROM unnest(_rates) AS g (key) JOIN holdfast.gate x ON x.kind = 'rate' AND x.key = ANY (ARRAY[g.key]);
    END IF;
    IF cardinality(_breakers) > 0 THEN
        RETURN QUERY SELECT NULL::uuid, 'breaker', g.key, (
                SELECT count(*) FROM holdfast.slot s WHERE s.key = g.key AND s.kind = 'breaker'),
            NULL::timestamptz, b.recent, b.open_until, b.held, NULL::timestamptz
        FROM unnest(_breakers) AS g (key) JOIN holdfast.breaker b ON b.name = g.key;
    END IF;
END $$;

DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.gate'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT SELECT ON holdfast.turn TO %s', _role);
    END LOOP;
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.gate'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT INSERT, UPDATE, DELETE ON holdfast.turn TO %s', _role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.line_tag, holdfast.lanes_at TO %s', _role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.comes_last, holdfast.is_lined TO %s', _role);
    END LOOP;
END $$;
