-- oldest: 4
-- Slots have numbers, and a limit that nobody waits for has no gate: a run with a limit writes one row more than others.
--
-- Of a limit of five there are the numbers one to five, each taken by one run at most: so many may run, whoever judges
-- them at once. A row of `gate` is there where somebody waits, and while somebody judges who may have to. Who begins to
-- wait holds the slots that keep him out, and who frees slots looks for gates before and after: so that one of the two
-- sees the other, and nobody waits for a slot that is free (decision 0102).

ALTER TABLE holdfast.slot ADD COLUMN number int4;
UPDATE holdfast.slot s SET number = n.number FROM (
    SELECT ctid AS at, row_number() OVER (PARTITION BY key, kind) AS number FROM holdfast.slot
) n WHERE s.ctid = n.at;
-- Programs of before give none: theirs are beyond every size.
ALTER TABLE holdfast.slot ALTER COLUMN number SET DEFAULT 1073741824 + floor(random() * 1073741823)::int4;
ALTER TABLE holdfast.slot ALTER COLUMN number SET NOT NULL;
ALTER TABLE holdfast.slot DROP CONSTRAINT slot_pkey;
ALTER TABLE holdfast.slot ADD PRIMARY KEY (key, kind, number);

-- take_slots: a slot for each of these jobs, or none at all: answers false where a limit has no room for them, and where
-- somebody else has just taken the same number. Numbers are guessed among twice as many as are needed, so that those who
-- come at once seldom want the same. `_strict`: of different sizes of one limit the smallest counts, else the largest.
CREATE FUNCTION holdfast.take_slots(_ids uuid[], _kinds text[], _keys text[], _sizes int4[], _strict bool)
RETURNS bool LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
DECLARE
    _start int4 := floor(random() * 1000000);
BEGIN
    WITH asked AS (
        SELECT a.kind, a.key, array_agg(a.id) AS ids, count(*) AS many,
               CASE WHEN _strict THEN min(a.size) ELSE max(a.size) END AS size
        FROM unnest(_ids, _kinds, _keys, _sizes) AS a (id, kind, key, size) GROUP BY a.kind, a.key
    ), room AS MATERIALIZED (
        SELECT a.*, h.held, w.width, CASE WHEN h.held > 0 THEN ARRAY(
                   SELECT n.number FROM (
                       SELECT generate_series(1, w.width)
                       EXCEPT SELECT s.number FROM holdfast.slot s WHERE s.key = a.key AND s.kind = a.kind
                   ) AS n (number) ORDER BY (n.number + _start) % w.width LIMIT a.many) END AS free
        FROM asked a CROSS JOIN LATERAL (
            SELECT count(*) FROM holdfast.slot s WHERE s.key = a.key AND s.kind = a.kind) AS h (held)
        CROSS JOIN LATERAL (SELECT least(a.size, 2 * (h.held + a.many) + 16)::int4) AS w (width)
    )
    INSERT INTO holdfast.slot (job_id, kind, key, number)
    SELECT j.id, r.kind, r.key, CASE WHEN r.held = 0 THEN 1 + (_start + j.rank) % r.width ELSE r.free[j.rank] END
    FROM room r CROSS JOIN LATERAL unnest(r.ids) WITH ORDINALITY AS j (id, rank)
    WHERE NOT EXISTS (SELECT 1 FROM room x WHERE x.held + x.many > x.size)
    ORDER BY r.kind COLLATE "C", r.key COLLATE "C", 4;
    RETURN FOUND;
EXCEPTION WHEN unique_violation OR not_null_violation THEN
    RETURN false;
END $$;

-- give_slots: the same for those of whom it was judged that there is room; what was judged before others came is to be
-- judged again.
CREATE FUNCTION holdfast.give_slots(_ids uuid[], _kinds text[], _keys text[], _sizes int4[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT holdfast.take_slots(_ids, _kinds, _keys, _sizes, false) THEN
        RAISE EXCEPTION 'a slot was taken meanwhile' USING ERRCODE = '40001';
    END IF;
END $$;

-- free_slots: these jobs do not run any more; whether somebody waits for what they had. Gates before slots, as everybody;
-- a gate that was made in between is to be held before its slots, too, and so all is to be begun anew.
CREATE FUNCTION holdfast.free_slots(_job_ids uuid[]) RETURNS bool LANGUAGE plpgsql
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
                           SELECT DISTINCT s.kind, s.key FROM unnest(_job_ids) AS j (id)
                           JOIN holdfast.slot s ON s.job_id = ANY (ARRAY[j.id])
                       ) f JOIN holdfast.gate x ON x.kind = f.kind AND x.key = ANY (ARRAY[f.key])
                       ORDER BY f.kind, f.key FOR NO KEY UPDATE OF x);
    END IF;
    WITH freed AS (
        DELETE FROM holdfast.slot WHERE ctid = ANY (ARRAY(
            SELECT s.ctid FROM unnest(_job_ids) AS j (id) JOIN holdfast.slot s ON s.job_id = ANY (ARRAY[j.id])))
        RETURNING kind, key
    )
    SELECT array_agg(f.kind), array_agg(f.key) INTO _kinds, _keys FROM (SELECT DISTINCT kind, key FROM freed) f;
    IF _keys IS NULL OR NOT EXISTS (SELECT 1 FROM holdfast.gate) THEN
        RETURN false;
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(_kinds, _keys) AS f (kind, key)
               JOIN holdfast.gate x ON x.kind = f.kind AND x.key = ANY (ARRAY[f.key]) WHERE x.ctid <> ALL (_held)) THEN
        RAISE EXCEPTION 'somebody has begun to wait meanwhile' USING ERRCODE = '40001';
    END IF;
    RETURN EXISTS (SELECT 1 FROM holdfast.look_after(_kinds, _keys, true) l WHERE l.waited);
END $$;

-- keep_out: these limits are full, as was judged by so many slots: somebody is about to wait for them, and holds them, so that
-- whoever frees one sees him when he has committed. Where one has been freed since, it is to be judged again.
CREATE FUNCTION holdfast.keep_out(_keys text[], _helds int8[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM unnest(_keys, _helds) AS f (key, held) LEFT JOIN (
            SELECT h.key, count(*) AS held FROM (
                SELECT s.key FROM unnest(_keys) AS k (key) JOIN holdfast.slot s ON s.key = k.key AND s.kind = 'limit'
                ORDER BY s.ctid FOR UPDATE OF s) h GROUP BY h.key
        ) n ON n.key = f.key WHERE coalesce(n.held, 0) < f.held
    ) THEN
        RAISE EXCEPTION 'a slot was freed meanwhile' USING ERRCODE = '40001';
    END IF;
END $$;

-- claim_judged: as claim_picked (0008), told the sizes of the limits of which slots are taken.
CREATE FUNCTION holdfast.claim_judged(
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
        INSERT INTO holdfast.parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
        SELECT r.seq, r.tag, _now, r.job_id, r.attempt, r.losses, r.crashes, r.attached, r.queue, p.reason, p.key
        FROM unnest(_parked, _reasons, _keys) AS p (id, reason, key)
        JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[p.id]);
    END IF;

    DELETE FROM holdfast.ready r WHERE r.job_id = ANY (_leased || _parked || _gone);

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

-- claim_picked: the same for programs of before, which know no sizes.
CREATE OR REPLACE FUNCTION holdfast.claim_picked(
    _worker uuid, _now timestamptz, _leased uuid[], _attached bool[], _parked uuid[], _reasons text[], _keys text[],
    _gone uuid[], _slot_ids uuid[], _slot_kinds text[], _slot_keys text[], _freed uuid[], _rates text[],
    _full_ats timestamptz[], _due_kinds text[], _due_keys text[], _due_ats timestamptz[], _depth_queues text[],
    _depth_changes int8[], _depth_parked int8[]
) RETURNS TABLE (job_id uuid, token int8) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT c.job_id, c.token FROM holdfast.claim_judged(
        _worker, _now, _leased, _attached, _parked, _reasons, _keys, _gone, _slot_ids, _slot_kinds, _slot_keys,
        array_fill(NULL::int4, ARRAY[cardinality(_slot_ids)]), _freed, _rates, _full_ats, _due_kinds, _due_keys, _due_ats,
        _depth_queues, _depth_changes, _depth_parked) c;
END $$;

-- lease_limited: the short way for jobs whose rows of `ready` the caller holds, each with one limit to wait for, or nothing
-- that could keep it: if all of these may run, they are leased. It does not judge: where anybody waits or might have to, or
-- operators have said anything, nothing is done.
CREATE FUNCTION holdfast.lease_limited(
    _worker uuid, _at tid[], _queues text[], _ids uuid[], _limits text[], _sizes int4[]
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
        IF NOT holdfast.take_slots(_ids, array_fill('limit'::text, ARRAY[cardinality(_ids)]), _limits, _sizes, true) THEN
            RETURN;
        END IF;
    END IF;
    _now := holdfast.clock();
    IF EXISTS (SELECT 1 FROM holdfast.rule)
        OR EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = ANY (_queues) AND s.paused) THEN
        -- Said before we could take the slots, or while we waited for others who take some.
        RAISE EXCEPTION 'an operator has spoken meanwhile' USING ERRCODE = '40001';
    END IF;

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

-- claim_limited: as before (0008).
CREATE OR REPLACE FUNCTION holdfast.claim_limited(_worker uuid, _ids uuid[]) RETURNS TABLE (
    id uuid, token int8, attempt int4, task text, queue text, priority int2, payload bytea, options bytea,
    max_attempts int4, tenant text, alone bool, headers bytea
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := holdfast.clock();
    _at tid[];
    _queues text[];
    _limited uuid[];
    _limits text[];
    _sizes int4[];
    _plain bool;
BEGIN
    PERFORM 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'worker % holds no valid lease', _worker USING ERRCODE = 'HF001';
    END IF;
    IF EXISTS (SELECT 1 FROM holdfast.rule) THEN
        RETURN;
    END IF;
    SELECT array_agg(p.at), array_agg(DISTINCT p.queue), bool_and(p.plain),
           array_agg(p.job_id) FILTER (WHERE p.limit_key IS NOT NULL),
           array_agg(p.limit_key) FILTER (WHERE p.limit_key IS NOT NULL),
           array_agg(p.limit_size) FILTER (WHERE p.limit_key IS NOT NULL)
    INTO _at, _queues, _plain, _limited, _limits, _sizes
    FROM (
        SELECT r.ctid AS at, r.job_id, r.queue, j.limit_key, j.limit_size,
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
        FROM holdfast.lease_limited(_worker, _at, _queues, _limited, _limits, _sizes) l;
    END IF;
END $$;

-- claim_limited_jobs: asked and answering as claim_jobs (0008), where the head of the lanes is expected to be jobs with a
-- limit. If all of them can go the short way they do, without a second look at them; `kind` then says which have something
-- attached. Else it is claim_jobs, and passes over those.
CREATE FUNCTION holdfast.claim_limited_jobs(
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
    _now timestamptz := holdfast.clock();
    _at tid[];
    _limited uuid[];
    _limits text[];
    _sizes int4[];
    _plain bool;
BEGIN
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
        FROM holdfast.lease_limited(_worker, _at, _queues, _limited, _limits, _sizes) l;
        IF FOUND THEN
            RETURN QUERY
            SELECT NULL::uuid, NULL::int8, NULL::int4, NULL, l.queue, l.priority, NULL::bytea, NULL::bytea, NULL::int4, NULL,
                   NULL::bool, NULL::bytea, 'lonely', NULL::int8, NULL::int8
            FROM unnest(_queues, _priorities) AS l (queue, priority) WHERE EXISTS (
                SELECT 1 FROM holdfast.ready r WHERE r.queue = l.queue AND r.priority = l.priority AND r.losses >= 2)
            UNION ALL
            SELECT NULL, NULL, NULL, NULL, d.queue, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'closed', NULL, NULL
            FROM holdfast.depth d WHERE d.closed AND d.queue = ANY (_queues);
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM holdfast.claim_jobs(_worker, _queues, _priorities, _tags, _seqs, _quotas);
END $$;

-- look_after: as before (0008); slots alone do not keep a gate.
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
               g.full_at IS NULL OR g.full_at <= _now AS unused
        FROM holdfast.gate g WHERE g.ctid = ANY (_held)
    ), forgotten AS (
        DELETE FROM holdfast.gate g WHERE g.ctid = ANY (ARRAY(SELECT at FROM seen WHERE unused AND NOT waited))
    ), due AS (
        UPDATE holdfast.gate g SET due_at = _now, freed = true
        WHERE g.ctid = ANY (ARRAY(SELECT at FROM seen WHERE waited))
    )
    SELECT s.kind, s.key, s.waited FROM seen s;
END $$;

-- settle_attached: as before (0008), by free_slots.
CREATE OR REPLACE FUNCTION holdfast.settle_attached(
    _worker uuid, _ids uuid[], _tokens int8[], _states text[], _causes text[], _results bytea[], _delays_s float8[],
    _reasons text[], _keys text[], _crashed bool[], _error_types text[], _error_messages text[], _tracebacks text[],
    _fingerprints text[], _words text[], _max_crashes int4, _attempts_kept int4
) RETURNS TABLE (token int8, state text) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _settled_ids uuid[];
    _settled int8[];
    _went text[];
BEGIN
    WITH moment AS MATERIALIZED (
        SELECT holdfast.clock() AS now
    ), run AS (
        DELETE FROM holdfast.active a
        USING unnest(_ids, _tokens, _states, _causes, _results, _delays_s, _reasons, _keys, _crashed, _error_types,
                     _error_messages, _tracebacks, _fingerprints, _words)
            AS s (job_id, token, state, cause, result, delay_s, reason, key, crashed, error_type, error_message,
                  traceback, fingerprint, words)
        WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = _worker) IS TRUE AND a.attached
            AND (s.crashed AND a.crashes + 1 >= _max_crashes) IS NOT TRUE
            AND NOT EXISTS (SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (ARRAY[s.job_id]))
        RETURNING a.token, a.seq, a.tag, a.started_at, a.job_id, a.attempt, a.priority, a.losses, a.queue,
                  (a.crashes + CASE WHEN s.crashed THEN 1 ELSE 0 END)::int2 AS crashes,
                  CASE WHEN s.state IS NULL THEN 'succeeded'
                       WHEN a.cancel_reason IS NOT NULL AND s.state IN ('scheduled', 'ready', 'parked')
                       THEN 'cancelled' ELSE s.state END AS state,
                  CASE WHEN a.cancel_reason IS NOT NULL AND s.state IN ('scheduled', 'ready', 'parked')
                       THEN a.cancel_reason ELSE s.reason END AS reason,
                  s.cause, s.result, s.delay_s, s.key, s.error_type, s.error_message, s.traceback, s.fingerprint,
                  s.words
    ), recorded AS (
        INSERT INTO holdfast.attempt (token, started_at, ended_at, job_id, worker, number, cause, error_type,
                                      error_message, traceback)
        SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.cause, r.error_type,
               r.error_message, r.traceback
        FROM moment, run r WHERE r.cause IS NOT NULL
    ), bounded AS (
        DELETE FROM holdfast.attempt t USING run r
        WHERE r.cause IS NOT NULL AND t.job_id = ANY (ARRAY[r.job_id]) AND t.token <= (
            SELECT b.token FROM holdfast.attempt b WHERE b.job_id = r.job_id ORDER BY b.token DESC
            LIMIT 1 OFFSET _attempts_kept - 1)
    ), ended AS (
        INSERT INTO holdfast.done (token, started_at, ended_at, job_id, worker, attempt, cancelled, result, reason)
        SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.state = 'cancelled', r.result,
               r.reason
        FROM moment, run r WHERE r.state IN ('succeeded', 'cancelled')
    ), buried AS (
        INSERT INTO holdfast.dead (token, started_at, ended_at, job_id, worker, attempt, queue, task, tenant, reason,
                                   error_type, error_message, fingerprint, words)
        SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.queue, coalesce(j.task, ''),
               coalesce(j.tenant, ''), r.reason, coalesce(r.error_type, ''), coalesce(r.error_message, ''),
               r.fingerprint, string_to_array(r.words, ' ')
        FROM moment, run r LEFT JOIN LATERAL (
            SELECT b.task, b.tenant FROM holdfast.job b WHERE b.id = r.job_id LIMIT 1) j ON true
        WHERE r.state = 'dead'
    ), scheduled AS (
        INSERT INTO holdfast.timer (due_at, job_id, attempt, losses, crashes, attached, queue)
        SELECT moment.now + r.delay_s * interval '1 second', r.job_id,
               r.attempt - CASE WHEN r.cause = 'retry' THEN 0 ELSE 1 END, r.losses, r.crashes, true, r.queue
        FROM moment, run r WHERE r.state = 'scheduled'
    ), parked AS (
        INSERT INTO holdfast.parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
        SELECT r.seq, r.tag, moment.now, r.job_id, r.attempt - 1, r.losses, r.crashes, true, r.queue, r.reason, r.key
        FROM moment, run r WHERE r.state = 'parked'
    ), returned AS (
        INSERT INTO holdfast.ready (seq, tag, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
        SELECT r.seq, r.tag, moment.now, r.job_id, r.priority, r.attempt - 1, r.losses, r.crashes, true, r.queue
        FROM moment, run r WHERE r.state = 'ready'
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change, parked)
        SELECT r.queue, count(*) FILTER (WHERE r.state = 'ready'), count(*) FILTER (WHERE r.state = 'parked')
        FROM run r WHERE r.state IN ('ready', 'parked') GROUP BY r.queue
    ), timeless AS (
        DELETE FROM holdfast.expiry e
        WHERE e.job_id = ANY (ARRAY(SELECT r.job_id FROM run r WHERE r.state IN ('succeeded', 'cancelled', 'dead')))
    )
    SELECT array_agg(r.job_id), array_agg(r.token), array_agg(r.state) INTO _settled_ids, _settled, _went FROM run r;

    -- With fresh eyes: somebody may have begun to wait for one of them while we waited for its row.
    IF EXISTS (SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids)) THEN
        RAISE EXCEPTION 'a run has been joined meanwhile' USING ERRCODE = '40001';
    END IF;
    IF holdfast.free_slots(_settled_ids) THEN
        RETURN QUERY SELECT NULL::int8, NULL::text;
    END IF;
    RETURN QUERY SELECT e.token, e.state FROM unnest(_settled, _went) AS e (token, state);
END $$;

-- settle_successes: as before (0008), in the same way.
CREATE OR REPLACE FUNCTION holdfast.settle_successes(
    _worker uuid, _ids uuid[], _tokens int8[], _results bytea[], _breakers text[], _attached bool
) RETURNS SETOF int8 LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
DECLARE
    _done int4 := 0;
    _joins bool;
    _timed bool;
    _settled_ids uuid[];
    _settled int8[];
BEGIN
    IF cardinality(_breakers) > 0 AND EXISTS (
        SELECT 1 FROM unnest(_breakers) AS n (name) JOIN holdfast.breaker b ON b.name = n.name
        WHERE b.open_until IS NOT NULL) THEN
        RETURN;
    END IF;
    IF NOT _attached THEN
        RETURN QUERY
        WITH moment AS MATERIALIZED (
            SELECT holdfast.clock() AS now
        ), run AS (
            DELETE FROM holdfast.active a USING unnest(_ids, _tokens, _results) AS s (job_id, token, result)
            WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = _worker) IS TRUE AND NOT a.attached
            RETURNING a.token, a.started_at, a.job_id, a.attempt, s.result
        )
        INSERT INTO holdfast.done (token, started_at, ended_at, job_id, worker, attempt, result)
        SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.result FROM moment, run r
        RETURNING token;
        GET DIAGNOSTICS _done = ROW_COUNT;
        IF _done = cardinality(_ids) THEN
            RETURN;
        END IF;
    END IF;

    _joins := EXISTS (SELECT 1 FROM holdfast.member);
    _timed := EXISTS (SELECT 1 FROM holdfast.expiry);
    WITH moment AS MATERIALIZED (
        SELECT holdfast.clock() AS now
    ), run AS (
        DELETE FROM holdfast.active a USING unnest(_ids, _tokens, _results) AS s (job_id, token, result)
        WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = _worker) IS TRUE AND a.attached
            AND (NOT _joins OR NOT EXISTS (SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (ARRAY[s.job_id])))
        RETURNING a.token, a.started_at, a.job_id, a.attempt, s.result
    ), ended AS (
        INSERT INTO holdfast.done (token, started_at, ended_at, job_id, worker, attempt, result)
        SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.result FROM moment, run r
    ), timeless AS (
        DELETE FROM holdfast.expiry e WHERE _timed AND e.job_id = ANY (ARRAY(SELECT r.job_id FROM run r))
    )
    SELECT array_agg(r.job_id), array_agg(r.token) INTO _settled_ids, _settled FROM run r;
    -- With fresh eyes: somebody may have begun to wait for one of them while we waited for its row.
    IF EXISTS (SELECT 1 FROM holdfast.member) AND EXISTS (
        SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids)) THEN
        RAISE EXCEPTION 'a run has been joined meanwhile' USING ERRCODE = '40001';
    END IF;
    IF holdfast.free_slots(_settled_ids) THEN
        RETURN NEXT NULL;
    END IF;
    RETURN QUERY SELECT unnest(_settled);
    _done := _done + coalesce(cardinality(_settled), 0);

    IF _attached AND _done < cardinality(_ids) THEN
        RETURN QUERY
        WITH moment AS MATERIALIZED (
            SELECT holdfast.clock() AS now
        ), run AS (
            DELETE FROM holdfast.active a USING unnest(_ids, _tokens, _results) AS s (job_id, token, result)
            WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = _worker) IS TRUE AND NOT a.attached
            RETURNING a.token, a.started_at, a.job_id, a.attempt, s.result
        )
        INSERT INTO holdfast.done (token, started_at, ended_at, job_id, worker, attempt, result)
        SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.result FROM moment, run r
        RETURNING token;
    END IF;
END $$;

-- Whoever may judge, serve or settle needs the new functions for it.
DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.slot'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.take_slots, holdfast.give_slots, holdfast.keep_out TO %s', _role);
    END LOOP;
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.active'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.free_slots, holdfast.lease_limited, holdfast.claim_limited_jobs, '
                       'holdfast.claim_judged TO %s', _role);
    END LOOP;
END $$;
