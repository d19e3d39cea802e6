-- oldest: 4
-- Slots of limits whose size changes, or is told in two ways; and less work for the server.
--
-- Numbers bound those who take slots at once, as long as all slots of a limit have numbers up to its size. Where there are
-- some beyond it (the size was larger before, or is for others; a program of an earlier version gave them), whoever takes
-- one more does it alone (HF002, decision 0102): nobody goes the short way meanwhile. For that, whoever goes it says so
-- with the lock that those share who want operators to say nothing meanwhile (`rules.still`).

-- is_alone: whether this transaction has said that nobody takes slots beside it (`rules.by_myself`).
CREATE FUNCTION holdfast.is_alone() RETURNS bool LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('holdfast.alone', true), '') <> ''
$$;

DROP FUNCTION holdfast.take_slots, holdfast.lease_limited;

-- take_slots: as before (0011); of different sizes of one limit the smallest counts. Not where there are numbers beyond it,
-- unless we are alone; nor where somebody else has a number in hand for long, so that others need not wait with us. Which
-- numbers are free is only asked where any is taken: one by one where these are few.
CREATE FUNCTION holdfast.take_slots(_ids uuid[], _kinds text[], _keys text[], _sizes int4[])
RETURNS bool LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '200ms'
AS $$
DECLARE
    _start int4 := floor(random() * 1000000);
    _alone bool := holdfast.is_alone();
BEGIN
    WITH asked AS (
        SELECT a.kind, a.key, array_agg(a.id) AS ids, count(*)::int4 AS many, min(a.size) AS size
        FROM unnest(_ids, _kinds, _keys, _sizes) AS a (id, kind, key, size) GROUP BY a.kind, a.key
    ), room AS MATERIALIZED (
        SELECT a.*, h.held, h.highest, least(a.size, 2 * (h.held + a.many) + 16)::int4 AS width
        FROM asked a CROSS JOIN LATERAL (
            SELECT count(*) AS held, max(s.number) AS highest FROM holdfast.slot s WHERE s.key = a.key AND s.kind = a.kind) h
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
        FROM room r WHERE NOT EXISTS (
            SELECT 1 FROM room x WHERE x.held + x.many > x.size OR (x.highest > x.size AND NOT _alone))
    )
    INSERT INTO holdfast.slot (job_id, kind, key, number)
    SELECT g.id, g.kind, g.key, g.number FROM given g ORDER BY g.kind COLLATE "C", g.key COLLATE "C", g.number;
    RETURN FOUND;
EXCEPTION WHEN unique_violation OR not_null_violation OR lock_not_available THEN
    RETURN false;
END $$;

-- give_slots: the same for those of whom it was judged that there is room, each by its own size: what was judged before
-- others came is to be judged again. Of one limit those of smaller sizes come first, who have fewer numbers to choose from.
CREATE OR REPLACE FUNCTION holdfast.give_slots(_ids uuid[], _kinds text[], _keys text[], _sizes int4[])
RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
DECLARE
    _some record;
BEGIN
    FOR _some IN
        SELECT array_agg(r.id) AS ids, array_agg(r.kind) AS kinds, array_agg(r.key) AS keys, array_agg(r.size) AS sizes
        FROM (
            SELECT a.*, dense_rank() OVER (PARTITION BY a.kind, a.key ORDER BY a.size) AS rank
            FROM unnest(_ids, _kinds, _keys, _sizes) AS a (id, kind, key, size)
        ) r GROUP BY r.rank ORDER BY r.rank
    LOOP
        CONTINUE WHEN holdfast.take_slots(_some.ids, _some.kinds, _some.keys, _some.sizes);
        IF NOT holdfast.is_alone() AND EXISTS (
            SELECT 1 FROM unnest(_some.kinds, _some.keys, _some.sizes) AS a (kind, key, size)
            JOIN holdfast.slot s ON s.key = a.key AND s.kind = a.kind AND s.number > a.size) THEN
            RAISE EXCEPTION 'there are slots beyond the size of a limit' USING ERRCODE = 'HF002';
        END IF;
        RAISE EXCEPTION 'a slot was taken meanwhile' USING ERRCODE = '40001';
    END LOOP;
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

-- lease_limited: as before (0011), for a caller who shares the lock by which operators say nothing meanwhile.
CREATE FUNCTION holdfast.lease_limited(
    _worker uuid, _at tid[], _ids uuid[], _limits text[], _sizes int4[]
) RETURNS TABLE (
    id uuid, token int8, attempt int4, task text, queue text, priority int2, payload bytea, options bytea,
    max_attempts int4, tenant text, alone bool, headers bytea, attached bool, tag int8, seq int8
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _era int8 := holdfast.timeline();
    _now timestamptz;
BEGIN
    IF EXISTS (SELECT 1 FROM holdfast.gate) AND EXISTS (
        SELECT 1 FROM unnest(_limits) AS l (key) JOIN holdfast.gate x ON x.kind = 'limit' AND x.key = ANY (ARRAY[l.key])) THEN
        RETURN;
    END IF;
    IF cardinality(_ids) > 0 THEN
        IF EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.job_id = ANY (_ids)) THEN
            RETURN;  -- kept for one who was let go
        END IF;
        IF NOT holdfast.take_slots(_ids, array_fill('limit'::text, ARRAY[cardinality(_ids)]), _limits, _sizes) THEN
            RETURN;
        END IF;
    END IF;
    _now := holdfast.clock();

    RETURN QUERY
    WITH taken AS (
        DELETE FROM holdfast.ready r WHERE r.ctid = ANY (_at)
        RETURNING r.seq, r.tag, r.job_id, r.attempt, r.priority, r.losses, r.crashes, r.attached, r.queue
    ), leased AS (
        INSERT INTO holdfast.active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes,
                                     attached, queue)
        SELECT _era + nextval('holdfast.run'), t.seq, t.tag, _now, t.job_id, _worker, t.attempt + 1, t.priority, t.losses,
               t.crashes, t.attached, t.queue
        FROM taken t RETURNING job_id, token, attempt, queue, priority, tag, seq, losses, attached
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change) SELECT queue, -count(*) FROM leased GROUP BY queue
    ), reached AS (
        INSERT INTO holdfast.lane_reached AS x (tag, priority, stripe, queue)
        SELECT max(tag), priority, ('x' || right(_worker::text, 1))::bit(4)::int4, queue
        FROM leased WHERE tag > 0 GROUP BY queue, priority ORDER BY queue COLLATE "C", priority
        ON CONFLICT (queue, priority, stripe) DO UPDATE SET tag = excluded.tag WHERE excluded.tag > x.tag
    )
    SELECT a.job_id, a.token, a.attempt, j.task, a.queue, a.priority, j.payload, j.options, j.max_attempts, j.tenant,
           a.losses >= 2, j.headers, a.attached, a.tag, a.seq
    FROM leased a CROSS JOIN LATERAL (
        SELECT b.task, b.payload, b.options, b.max_attempts, b.tenant, b.headers FROM holdfast.job b
        WHERE b.id = a.job_id LIMIT 1
    ) j;
END $$;

-- claim_limited: as before (0011). First of all, operators are to say nothing until it has committed: while it holds
-- nothing that they may wait for.
CREATE OR REPLACE FUNCTION holdfast.claim_limited(_worker uuid, _ids uuid[]) RETURNS TABLE (
    id uuid, token int8, attempt int4, task text, queue text, priority int2, payload bytea, options bytea,
    max_attempts int4, tenant text, alone bool, headers bytea
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _at tid[];
    _limited uuid[];
    _limits text[];
    _sizes int4[];
    _plain bool;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0));
    _now := holdfast.clock();
    PERFORM 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'worker % holds no valid lease', _worker USING ERRCODE = 'HF001';
    END IF;
    IF EXISTS (SELECT 1 FROM holdfast.rule) THEN
        RETURN;
    END IF;
    SELECT array_agg(p.at), bool_and(p.plain),
           array_agg(p.job_id) FILTER (WHERE p.limit_key IS NOT NULL),
           array_agg(p.limit_key) FILTER (WHERE p.limit_key IS NOT NULL),
           array_agg(p.limit_size) FILTER (WHERE p.limit_key IS NOT NULL)
    INTO _at, _plain, _limited, _limits, _sizes
    FROM (
        SELECT r.ctid AS at, r.job_id, j.limit_key, j.limit_size,
               j.id IS NOT NULL AND (j.gates IS NULL OR j.limit_key IS NOT NULL)
               AND (j.expires_at IS NULL OR j.expires_at > _now) AS plain
        FROM unnest(_ids) AS a (id) JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[a.id])
        LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[r.job_id])
        WHERE NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = ANY (ARRAY[r.queue]) AND s.paused)
        FOR UPDATE OF r SKIP LOCKED
    ) p;
    IF _plain THEN
        RETURN QUERY SELECT l.id, l.token, l.attempt, l.task, l.queue, l.priority, l.payload, l.options, l.max_attempts,
                            l.tenant, l.alone, l.headers
        FROM holdfast.lease_limited(_worker, _at, _limited, _limits, _sizes) l;
    END IF;
END $$;

-- claim_limited_jobs: the same.
CREATE OR REPLACE FUNCTION holdfast.claim_limited_jobs(
    _worker uuid, _queues text[], _priorities int2[], _tags int8[], _seqs int8[], _quotas int4[]
) RETURNS TABLE (
    id uuid, token int8, attempt int4, task text, queue text, priority int2, payload bytea, options bytea,
    max_attempts int4, tenant text, alone bool, headers bytea, kind text, tag int8, seq int8
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _at tid[];
    _limited uuid[];
    _limits text[];
    _sizes int4[];
    _plain bool;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0));
    _now := holdfast.clock();
    PERFORM 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE;
    IF FOUND AND NOT EXISTS (SELECT 1 FROM holdfast.rule) THEN
        SELECT array_agg(p.at), bool_and(p.plain), array_agg(p.job_id) FILTER (WHERE p.limit_key IS NOT NULL),
               array_agg(p.limit_key) FILTER (WHERE p.limit_key IS NOT NULL),
               array_agg(p.limit_size) FILTER (WHERE p.limit_key IS NOT NULL)
        INTO _at, _plain, _limited, _limits, _sizes
        FROM (
            SELECT h.at, h.job_id, j.limit_key, j.limit_size,
                   j.id IS NOT NULL AND (j.gates IS NULL OR j.limit_key IS NOT NULL)
                   AND (j.expires_at IS NULL OR j.expires_at > _now) AS plain
            FROM unnest(_queues, _priorities, _tags, _seqs, _quotas) AS l (queue, priority, tag, seq, quota)
            CROSS JOIN LATERAL (
                SELECT r.ctid AS at, r.job_id FROM holdfast.ready r
                WHERE r.queue = l.queue AND r.priority = l.priority AND (r.tag, r.seq) >= (l.tag, l.seq) AND r.losses < 2
                    AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = l.queue AND s.paused)
                ORDER BY r.tag, r.seq LIMIT l.quota FOR UPDATE SKIP LOCKED
            ) h LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[h.job_id])
        ) p;
    END IF;
    IF _plain THEN
        RETURN QUERY SELECT l.id, l.token, l.attempt, l.task, l.queue, l.priority, l.payload, l.options, l.max_attempts,
                            l.tenant, l.alone, l.headers, CASE WHEN l.attached THEN 'limited' ELSE 'job' END, l.tag, l.seq
        FROM holdfast.lease_limited(_worker, _at, _limited, _limits, _sizes) l;
        IF FOUND THEN
            RETURN QUERY
            SELECT NULL::uuid, NULL::int8, NULL::int4, NULL, l.queue, l.priority, NULL::bytea, NULL::bytea, NULL::int4, NULL,
                   NULL::bool, NULL::bytea, 'lonely', NULL::int8, NULL::int8
            FROM unnest(_queues, _priorities) AS l (queue, priority) WHERE EXISTS (
                SELECT 1 FROM holdfast.ready r WHERE r.queue = l.queue AND r.priority = l.priority AND r.losses >= 2)
                AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = l.queue AND s.paused)
            UNION ALL
            SELECT NULL, NULL, NULL, NULL, d.queue, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'closed', NULL, NULL
            FROM holdfast.depth d WHERE d.closed AND d.queue = ANY (_queues);
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM holdfast.claim_jobs(_worker, _queues, _priorities, _tags, _seqs, _quotas);
END $$;

-- pick_jobs: as before (0008), in the same way.
CREATE OR REPLACE FUNCTION holdfast.pick_jobs(_worker uuid, _ids uuid[]) RETURNS TABLE (
    job_id uuid, queue text, priority int2, attempt int4, losses int2, crashes int2, attached bool, tag int8, seq int8,
    task text, payload bytea, options bytea, max_attempts int4, tenant text, headers bytea, expires_at timestamptz,
    gates text, slots text[], ruled bool, said text, now timestamptz
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _ruled bool;
    _said text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0));
    _said := holdfast.said();
    PERFORM 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'worker % holds no valid lease', _worker USING ERRCODE = 'HF001';
    END IF;
    _ruled := EXISTS (SELECT 1 FROM holdfast.rule);
    RETURN QUERY
    SELECT r.job_id, r.queue, r.priority, r.attempt, r.losses, r.crashes, r.attached, r.tag, r.seq,
           j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.gates,
           ARRAY(SELECT s.kind || ' ' || s.key FROM holdfast.slot s WHERE s.job_id = r.job_id), _ruled, _said,
           holdfast.clock()
    FROM unnest(_ids) AS a (id) JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[a.id])
    LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[r.job_id])
    WHERE NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = ANY (ARRAY[r.queue]) AND s.paused)
    ORDER BY r.tag, r.seq FOR UPDATE OF r SKIP LOCKED;
END $$;

-- look_after: as before (0011); the probe of a breaker keeps its gate, so that whoever ends it and whoever begins to wait
-- for that take turns: a breaker is read without holding what keeps others out, and there is nothing else to hold.
CREATE OR REPLACE FUNCTION holdfast.look_after(_kinds text[], _keys text[], _patient bool)
RETURNS TABLE (kind text, key text, waited bool) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _held tid[];
BEGIN
    IF _patient THEN
        _held := ARRAY(SELECT x.ctid FROM unnest(_kinds, _keys) AS f (kind, key)
                       JOIN holdfast.gate x ON x.kind = f.kind AND x.key = ANY (ARRAY[f.key])
                       ORDER BY f.kind, f.key FOR NO KEY UPDATE OF x);
    ELSE
        _held := ARRAY(SELECT x.ctid FROM unnest(_kinds, _keys) AS f (kind, key)
                       JOIN holdfast.gate x ON x.kind = f.kind AND x.key = ANY (ARRAY[f.key])
                       FOR NO KEY UPDATE OF x SKIP LOCKED);
    END IF;
    _now := holdfast.clock();
    RETURN QUERY
    WITH seen AS MATERIALIZED (
        SELECT g.ctid AS at, g.kind, g.key,
               (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key
                   ORDER BY p.seq LIMIT 1) IS NOT NULL AS waited,
               (g.full_at IS NULL OR g.full_at <= _now) AND (g.kind <> 'breaker' OR NOT EXISTS (
                   SELECT 1 FROM holdfast.slot s WHERE s.key = g.key AND s.kind = g.kind)) AS unused
        FROM holdfast.gate g WHERE g.ctid = ANY (_held)
    ), forgotten AS (
        DELETE FROM holdfast.gate g WHERE g.ctid = ANY (ARRAY(SELECT at FROM seen WHERE unused AND NOT waited))
    ), due AS (
        UPDATE holdfast.gate g SET due_at = _now, freed = true
        WHERE g.ctid = ANY (ARRAY(SELECT at FROM seen WHERE waited))
    )
    SELECT s.kind, s.key, s.waited FROM seen s;
END $$;

-- parked_since: of the first hundred that are parked in a queue the one that has waited longest. By the bounds of two
-- columns, which one index alone has, and not by a bitmap: whatever statistics say, no more are read.
CREATE FUNCTION holdfast.parked_since(_queue text) RETURNS timestamptz LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off
AS $$
BEGIN
    RETURN (SELECT min(w.parked_at) FROM (
        SELECT p.queue, p.parked_at FROM holdfast.parked p
        WHERE (p.queue, p.job_id) >= (_queue, '00000000-0000-0000-0000-000000000000'::uuid)
        ORDER BY p.queue, p.job_id LIMIT 100) w WHERE w.queue = _queue);
END $$;

DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.depth'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.parked_since TO %s', _role);
    END LOOP;
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.slot'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.is_alone, holdfast.take_slots TO %s', _role);
    END LOOP;
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.active'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.lease_limited TO %s', _role);
    END LOOP;
END $$;
