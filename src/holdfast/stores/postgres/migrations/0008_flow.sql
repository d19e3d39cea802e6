-- oldest: 4
-- Flow control: what jobs pass before each run (holdfast/core/gates.py), what operators say about it, unique keys.
-- `x.job_id = ANY (ARRAY[y.job_id])` finds what `x.job_id = y.job_id` finds, and is never a reason to read all of x.

-- What each run of a job has to pass, as text (holdfast/core/gates_text.py); NULL: nothing. Where that is one limit to
-- wait for, and nothing else, `limit_key` and `limit_size` say the same: such jobs are claimed the short way, if they can.
ALTER TABLE holdfast.job ADD COLUMN gates text;

-- What runs hold: slots of limits, and the probes of breakers.
ALTER TABLE holdfast.slot ADD COLUMN kind text NOT NULL DEFAULT 'limit';
ALTER TABLE holdfast.slot DROP CONSTRAINT slot_pkey;
ALTER TABLE holdfast.slot ADD PRIMARY KEY (key, kind, job_id);
DROP INDEX holdfast.slot_by_key;
CREATE INDEX slot_by_job ON holdfast.slot (job_id);
ALTER TABLE holdfast.slot SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- A gate is a row to hold while somebody judges or frees there; made at first use, gone when nobody uses it. `full_at`:
-- when the bucket of a rate is full again. `due_at`: when to look after those who wait here; NULL: when something says so.
-- `freed`: it is due because of a slot that was freed, which is for one of them.
CREATE TABLE holdfast.gate (
    full_at  timestamptz,
    due_at   timestamptz,
    freed    bool NOT NULL DEFAULT false,
    kind     text NOT NULL,
    key      text NOT NULL,
    PRIMARY KEY (key, kind)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX gate_due ON holdfast.gate (due_at) WHERE due_at IS NOT NULL;

-- Breakers that have failed, or that an operator has touched (holdfast/core/breaker.py). `recent`: in epoch seconds.
CREATE TABLE holdfast.breaker (
    name        text PRIMARY KEY,
    open_until  timestamptz,
    held        bool NOT NULL DEFAULT false,
    recent      float8[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

-- What operators say: of a limit its size and its pace; of a task or a tenant that it is paused. `concerns`: whose jobs
-- have to be looked at also where they have no gates: those of this queue; empty: everybody's.
CREATE TABLE holdfast.rule (
    what      text NOT NULL,
    name      text NOT NULL,
    size      int4,
    count     float8,
    per_s     float8,
    burst     int4,
    concerns  text GENERATED ALWAYS AS (CASE
        WHEN what IN ('task', 'tenant') OR name LIKE 'task:%' THEN '' WHEN name LIKE 'queue:%' THEN substr(name, 7)
    END) STORED,
    PRIMARY KEY (what, name)
);
CREATE INDEX rule_by_concern ON holdfast.rule (concerns) WHERE concerns IS NOT NULL;

-- Who changed what, when.
CREATE TABLE holdfast.setting_change (
    number  int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL,
    by      text NOT NULL,
    what    text NOT NULL,
    name    text NOT NULL,
    before  text,
    after   text
);

-- One key, one job, as long as the next claim of it says. `first_at`: of those who replaced each other, the first.
-- `expires_at`: from then on nobody can be held back by it; NULL: as long as the job is there.
CREATE TABLE holdfast.unique_key (
    job_id      uuid NOT NULL,
    first_at    timestamptz NOT NULL,
    expires_at  timestamptz,
    key         text PRIMARY KEY
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX unique_key_by_job ON holdfast.unique_key (job_id);
CREATE INDEX unique_key_by_end ON holdfast.unique_key (expires_at) WHERE expires_at IS NOT NULL;

-- Who waits at a gate counts for watermarks as well, so that a backlog of limited jobs closes its queue.
ALTER TABLE holdfast.depth ADD COLUMN parked int8 NOT NULL DEFAULT 0;
ALTER TABLE holdfast.depth_change ADD COLUMN parked int8 NOT NULL DEFAULT 0;
INSERT INTO holdfast.depth_change (queue, change, parked) SELECT queue, 0, count(*) FROM holdfast.parked GROUP BY queue;

ALTER TABLE holdfast.queue_setting ADD COLUMN draining bool NOT NULL DEFAULT false;

-- give_tags, guess_tags: as before (0007); a job that was moved to another lane does not wait in the first any more.
CREATE OR REPLACE FUNCTION holdfast.give_tags(
    _queues text[], _priorities int2[], _tenants text[], _counts int4[], _job_ids uuid[]
) RETURNS TABLE (number int4, first int8, cost int8) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
DECLARE
    _there int4;
BEGIN
    PERFORM 1 FROM unnest(_queues, _priorities, _tenants) AS g (queue, priority, tenant)
    JOIN holdfast.tenant_tag t ON t.queue = g.queue COLLATE "C" AND t.priority = g.priority
        AND t.tenant = g.tenant COLLATE "C"
    ORDER BY t.queue, t.priority, t.tenant FOR UPDATE OF t;
    GET DIAGNOSTICS _there = ROW_COUNT;
    IF _there < cardinality(_queues) THEN
        INSERT INTO holdfast.tenant_tag AS t (tag, job_id, priority, queue, tenant)
        SELECT 0, g.job_id, g.priority, g.queue, g.tenant
        FROM unnest(_queues, _priorities, _tenants, _job_ids) AS g (queue, priority, tenant, job_id)
        WHERE NOT EXISTS (SELECT 1 FROM holdfast.tenant_tag x WHERE x.queue = g.queue COLLATE "C"
            AND x.priority = g.priority AND x.tenant = g.tenant COLLATE "C")
        ORDER BY g.queue COLLATE "C", g.priority, g.tenant COLLATE "C"
        ON CONFLICT (queue, priority, tenant) DO UPDATE SET tag = t.tag;
    END IF;
    -- A statement of its own, which sees what those have committed for whom we have waited.
    RETURN QUERY
    WITH lane AS MATERIALIZED (
        SELECT l.queue, l.priority, greatest(1, (
            SELECT max(r.tag) FROM holdfast.lane_reached r
            WHERE r.queue = l.queue COLLATE "C" AND r.priority = l.priority)) AS reached
        FROM (SELECT DISTINCT queue, priority FROM unnest(_queues, _priorities) AS g (queue, priority)) l
    ), given AS MATERIALIZED (
        SELECT g.number, t.ctid AS at, c.cost, g.count, g.job_id, holdfast.next_tag(
            l.reached, coalesce(w.tag, k.tag), c.cost, w.tag IS NOT NULL) AS first
        FROM unnest(_queues, _priorities, _tenants, _counts, _job_ids) WITH ORDINALITY
            AS g (queue, priority, tenant, count, job_id, number)
        JOIN lane l ON l.queue = g.queue AND l.priority = g.priority
        JOIN holdfast.tenant_tag t ON t.queue = g.queue COLLATE "C" AND t.priority = g.priority
            AND t.tenant = g.tenant COLLATE "C"
        LEFT JOIN holdfast.tenant_setting s ON s.tenant = g.tenant COLLATE "C"
        CROSS JOIN LATERAL (SELECT holdfast.cost_of(s.weight) AS cost) c
        CROSS JOIN LATERAL (
            (SELECT n.tag, n.job_id FROM holdfast.tenant_note n WHERE n.queue = g.queue COLLATE "C"
                AND n.priority = g.priority AND n.tenant = g.tenant COLLATE "C" AND n.tag > t.tag
             ORDER BY n.tag DESC LIMIT 1)
            UNION ALL SELECT t.tag, t.job_id LIMIT 1) k
        CROSS JOIN LATERAL (
            SELECT CASE WHEN k.tag <= l.reached
                        OR EXISTS (SELECT 1 FROM holdfast.ready r WHERE r.job_id = k.job_id AND r.tag = k.tag
                                       AND r.queue = g.queue COLLATE "default" AND r.priority = g.priority) THEN k.tag
                   ELSE holdfast.last_waiting(g.queue, g.priority, g.tenant, l.reached, k.tag, c.cost) END AS tag) w
    ), kept AS (
        UPDATE holdfast.tenant_tag t SET tag = g.first + (g.count - 1) * g.cost, job_id = g.job_id
        FROM given g WHERE t.ctid = g.at
    )
    SELECT g.number::int4, g.first, g.cost FROM given g;
END $$;

CREATE OR REPLACE FUNCTION holdfast.guess_tags(
    _queues text[], _priorities int2[], _tenants text[], _counts int4[], _job_ids uuid[]
) RETURNS TABLE (number int4, first int8, cost int8) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    RETURN QUERY
    WITH given AS MATERIALIZED (
        SELECT g.*, c.cost, holdfast.next_tag(
            l.reached, coalesce(w.tag, k.tag), c.cost, w.tag IS NOT NULL) AS first
        FROM unnest(_queues, _priorities, _tenants, _counts, _job_ids) WITH ORDINALITY
            AS g (queue, priority, tenant, count, job_id, number)
        LEFT JOIN holdfast.tenant_tag t ON t.queue = g.queue COLLATE "C" AND t.priority = g.priority
            AND t.tenant = g.tenant COLLATE "C"
        LEFT JOIN holdfast.tenant_setting s ON s.tenant = g.tenant COLLATE "C"
        CROSS JOIN LATERAL (SELECT holdfast.cost_of(s.weight) AS cost) c
        CROSS JOIN LATERAL (SELECT greatest(1, (
            SELECT max(r.tag) FROM holdfast.lane_reached r
            WHERE r.queue = g.queue COLLATE "C" AND r.priority = g.priority)) AS reached) l
        CROSS JOIN LATERAL (
            (SELECT n.tag, n.job_id FROM holdfast.tenant_note n WHERE n.queue = g.queue COLLATE "C"
                AND n.priority = g.priority AND n.tenant = g.tenant COLLATE "C" AND n.tag > coalesce(t.tag, 0)
             ORDER BY n.tag DESC LIMIT 1)
            UNION ALL SELECT coalesce(t.tag, 0), t.job_id LIMIT 1) k
        CROSS JOIN LATERAL (
            SELECT CASE WHEN k.tag <= l.reached
                        OR EXISTS (SELECT 1 FROM holdfast.ready r WHERE r.job_id = k.job_id AND r.tag = k.tag
                                       AND r.queue = g.queue COLLATE "default" AND r.priority = g.priority) THEN k.tag
                   ELSE holdfast.last_waiting(g.queue, g.priority, g.tenant, l.reached, k.tag, c.cost) END AS tag) w
    ), noted AS (
        INSERT INTO holdfast.tenant_note (tag, job_id, priority, queue, tenant)
        SELECT g.first + (g.count - 1) * g.cost, g.job_id, g.priority, g.queue, g.tenant FROM given g
    )
    SELECT g.number::int4, g.first, g.cost FROM given g;
END $$;

-- insert_gated_jobs: as insert_fair_jobs (0007), for jobs with gates, in queues with and without tenants.
CREATE FUNCTION holdfast.insert_gated_jobs(
    _ids uuid[], _payloads bytea[], _kinds int4[], _tasks text[], _queues text[], _priorities int2[], _tenants text[],
    _max_attempts int4[], _options bytea[], _tags text[], _metadata bytea[], _headers bytea[], _chains int4[],
    _ranks int4[], _chain_queues text[], _chain_priorities int2[], _chain_tenants text[], _chain_counts int4[],
    _chain_job_ids uuid[], _gates text[], _limit_keys text[], _limit_sizes int4[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    _now timestamptz := holdfast.clock();
    _firsts int8[];
    _costs int8[];
BEGIN
    INSERT INTO holdfast.job (id, created_at, priority, max_attempts, task, queue, tenant, payload, options, tags,
                              metadata, headers, gates, limit_key, limit_size)
    SELECT j.id, _now, _priorities[j.kind], _max_attempts[j.kind], _tasks[j.kind], _queues[j.kind], _tenants[j.kind],
           j.payload, j.options,
           CASE WHEN j.tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(j.tags::jsonb)) END,
           j.metadata, j.headers, j.gates, j.limit_key, j.limit_size
    FROM unnest(_ids, _kinds, _payloads, _options, _tags, _metadata, _headers, _gates, _limit_keys, _limit_sizes)
        AS j (id, kind, payload, options, tags, metadata, headers, gates, limit_key, limit_size);

    IF cardinality(_chain_queues) > 0 THEN
        SELECT array_agg(g.first ORDER BY g.number), array_agg(g.cost ORDER BY g.number) INTO _firsts, _costs
        FROM holdfast.give_tags(_chain_queues, _chain_priorities, _chain_tenants, _chain_counts, _chain_job_ids) g;
    END IF;

    INSERT INTO holdfast.ready (seq, tag, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
    SELECT nextval('holdfast.place'), coalesce(_firsts[_chains[j.kind]] + j.rank * _costs[_chains[j.kind]], 0), _now,
           j.id, _priorities[j.kind], 0, 0, 0, j.gates IS NOT NULL, _queues[j.kind]
    FROM unnest(_ids, _kinds, _ranks, _gates) AS j (id, kind, rank, gates);

    INSERT INTO holdfast.depth_change (queue, change)
    SELECT _queues[j.kind], count(*) FROM unnest(_kinds) AS j (kind) GROUP BY 1;
END $$;

-- take_unique: unique keys for new jobs, each from whoever is said to have it (NULL: from nobody); answers with those
-- taken. In the order of the keys, and as patient as take_keys (0002).
CREATE FUNCTION holdfast.take_unique(
    _keys text[], _job_ids uuid[], _first_ats timestamptz[], _expires_ats timestamptz[], _befores uuid[]
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
        WHERE u.job_id = _befores[array_position(_job_ids, excluded.job_id)]
    RETURNING u.key;
END $$;

-- claim_jobs: as before (0007); where rules concern a lane, all of its jobs are to be claimed as attached ones.
CREATE OR REPLACE FUNCTION holdfast.claim_jobs(
    _worker uuid, _queues text[], _priorities int2[], _tags int8[], _seqs int8[], _quotas int4[]
) RETURNS TABLE (
    id uuid, token int8, attempt int4, task text, queue text, priority int2, payload bytea, options bytea,
    max_attempts int4, tenant text, alone bool, headers bytea, kind text, tag int8, seq int8
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_sort = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH me AS MATERIALIZED (
        SELECT id, EXISTS (SELECT 1 FROM holdfast.rule WHERE concerns IS NOT NULL) AS ruled
        FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE
    ), asked AS MATERIALIZED (
        SELECT l.*, CASE WHEN me.ruled THEN EXISTS (
                   SELECT 1 FROM holdfast.rule c WHERE c.concerns = ANY (ARRAY['', l.queue])) ELSE false END AS ruled
        FROM me CROSS JOIN unnest(_queues, _priorities, _tags, _seqs, _quotas)
            AS l (queue, priority, tag, seq, quota)
        WHERE NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = l.queue AND s.paused)
    ), head AS MATERIALIZED (
        SELECT l.queue, l.priority, h.at, h.attached OR l.ruled AS attached, h.tag, h.seq, h.job_id
        FROM asked l CROSS JOIN LATERAL (
            SELECT r.ctid AS at, r.attached, r.tag, r.seq, r.job_id FROM holdfast.ready r
            WHERE r.queue = l.queue AND r.priority = l.priority AND (r.tag, r.seq) >= (l.tag, l.seq) AND r.losses < 2
            ORDER BY r.tag, r.seq LIMIT l.quota FOR UPDATE SKIP LOCKED
        ) h
    ), moment AS MATERIALIZED (
        SELECT holdfast.timeline() AS era, holdfast.clock() AS now
    ), taken AS (
        DELETE FROM holdfast.ready r WHERE r.ctid = ANY (ARRAY(SELECT at FROM head WHERE NOT attached))
        RETURNING r.seq, r.tag, r.job_id, r.attempt, r.priority, r.losses, r.crashes, r.queue
    ), leased AS (
        INSERT INTO holdfast.active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes,
                                     attached, queue)
        SELECT moment.era + nextval('holdfast.run'), t.seq, t.tag, moment.now, t.job_id, _worker, t.attempt + 1,
               t.priority, t.losses, t.crashes, false, t.queue
        FROM moment, taken t RETURNING job_id, token, attempt, queue, priority, tag, seq
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change) SELECT queue, -count(*) FROM leased GROUP BY queue
    ), reached AS (
        INSERT INTO holdfast.lane_reached AS x (tag, priority, stripe, queue)
        SELECT max(tag), priority, ('x' || right(_worker::text, 1))::bit(4)::int4, queue
        FROM leased WHERE tag > 0 GROUP BY queue, priority ORDER BY queue COLLATE "C", priority
        ON CONFLICT (queue, priority, stripe) DO UPDATE SET tag = excluded.tag WHERE excluded.tag > x.tag
    )
    SELECT a.job_id, a.token, a.attempt, j.task, a.queue, a.priority, j.payload, j.options, j.max_attempts,
           coalesce(j.tenant, ''), false, j.headers, 'job', a.tag, a.seq
    FROM leased a LEFT JOIN LATERAL (
        SELECT b.task, b.payload, b.options, b.max_attempts, b.tenant, b.headers FROM holdfast.job b
        WHERE b.id = a.job_id LIMIT 1
    ) j ON true
    UNION ALL
    SELECT h.job_id, NULL, NULL, NULL, h.queue, h.priority, NULL, NULL, NULL, NULL, NULL, NULL, 'attached', h.tag, h.seq
    FROM head h WHERE h.attached
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, l.queue, l.priority, NULL, NULL, NULL, NULL, NULL, NULL, 'lonely', NULL, NULL
    FROM asked l WHERE EXISTS (
        SELECT 1 FROM holdfast.ready r WHERE r.queue = l.queue AND r.priority = l.priority AND r.losses >= 2)
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, d.queue, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'closed', NULL, NULL
    FROM me CROSS JOIN holdfast.depth d WHERE d.closed AND d.queue = ANY (_queues);

    IF NOT FOUND AND NOT EXISTS (SELECT 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock()) THEN
        RAISE EXCEPTION 'worker % holds no valid lease', _worker USING ERRCODE = 'HF001';
    END IF;
END $$;

-- How jobs with gates are claimed, in one transaction: pick_jobs, hold_gates, the rule (core/gates.py: `admit`), and
-- claim_picked. Rows of jobs are taken without waiting, gates in the order of kind and key.

-- said: all that operators say about who may start, as a digest; NULL: nothing.
CREATE FUNCTION holdfast.said() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT md5(string_agg(said, ' ' ORDER BY said)) FROM (
        SELECT r::text FROM holdfast.rule r UNION ALL SELECT s.queue FROM holdfast.queue_setting s WHERE s.paused
    ) AS x (said)
$$;

-- pick_jobs: those of these jobs that are still ready, held here, with all that their claim has to know.
CREATE FUNCTION holdfast.pick_jobs(_worker uuid, _ids uuid[]) RETURNS TABLE (
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
    _said text := holdfast.said();
BEGIN
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

-- hold_gates: from here to the commit nobody else judges or frees at these gates. What is taken of them, where that is
-- anything; which slots these jobs have; and first the time, which is asked after the wait.
-- `_claiming`: where a slot of a limit was freed for those who wait there, it is full for everybody who comes now; and
-- where operators do not say the same any more as before the wait (`_said`), all is to be begun anew: what they say holds
-- from its commit on.
CREATE FUNCTION holdfast.hold_gates(
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
        RETURN QUERY SELECT NULL::uuid, 'rate', g.key, 0::int8, x.full_at, NULL::float8[], NULL::timestamptz, NULL::bool,
                            NULL::timestamptz
        FROM unnest(_rates) AS g (key) JOIN holdfast.gate x ON x.kind = 'rate' AND x.key = ANY (ARRAY[g.key])
        WHERE x.full_at IS NOT NULL;
    END IF;
    IF cardinality(_breakers) > 0 THEN
        RETURN QUERY SELECT NULL::uuid, 'breaker', g.key, (
                SELECT count(*) FROM holdfast.slot s WHERE s.key = g.key AND s.kind = 'breaker'),
            NULL::timestamptz, b.recent, b.open_until, b.held, NULL::timestamptz
        FROM unnest(_breakers) AS g (key) JOIN holdfast.breaker b ON b.name = g.key;
    END IF;
END $$;

-- claim_picked: what became of jobs that pick_jobs holds: leased (`attached`: with slots, or anything else that hangs on
-- them), parked, or gone, which their endings follow. `_freed`: those whose slots are for others.
CREATE FUNCTION holdfast.claim_picked(
    _worker uuid, _now timestamptz, _leased uuid[], _attached bool[], _parked uuid[], _reasons text[], _keys text[],
    _gone uuid[], _slot_ids uuid[], _slot_kinds text[], _slot_keys text[], _freed uuid[], _rates text[],
    _full_ats timestamptz[], _due_kinds text[], _due_keys text[], _due_ats timestamptz[], _depth_queues text[],
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
        INSERT INTO holdfast.slot (job_id, kind, key) SELECT * FROM unnest(_slot_ids, _slot_kinds, _slot_keys);
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

-- claim_limited: the short way for jobs each of which has one limit to wait for, or nothing at all that could keep it: if
-- all of these may run, they are leased. It does not judge: where anybody might have to wait, or a rule is set, or there
-- is anything else about one of them, nothing is done, and they are claimed the longer way.
CREATE FUNCTION holdfast.claim_limited(_worker uuid, _ids uuid[]) RETURNS TABLE (
    id uuid, token int8, attempt int4, task text, queue text, priority int2, payload bytea, options bytea,
    max_attempts int4, tenant text, alone bool, headers bytea
) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _era int8 := holdfast.timeline();
    _now timestamptz := holdfast.clock();
    _at tid[];
    _queues text[];
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
    SELECT array_agg(p.at), array_agg(DISTINCT p.queue), array_agg(p.limit_key), array_agg(p.limit_size), bool_and(p.plain)
    INTO _at, _queues, _limits, _sizes, _plain
    FROM (
        SELECT r.ctid AS at, r.queue, j.limit_key, j.limit_size,
               j.id IS NOT NULL AND (j.gates IS NULL OR j.limit_key IS NOT NULL)
               AND (j.expires_at IS NULL OR j.expires_at > _now)
               AND NOT EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.job_id = r.job_id) AS plain
        FROM unnest(_ids) AS a (id) JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[a.id])
        LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[r.job_id])
        WHERE NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = ANY (ARRAY[r.queue]) AND s.paused)
        FOR UPDATE OF r SKIP LOCKED
    ) p;
    IF _plain IS NOT TRUE THEN
        RETURN;
    END IF;
    INSERT INTO holdfast.gate AS x (kind, key)
    SELECT 'limit', g.key FROM (SELECT DISTINCT key FROM unnest(_limits) AS u (key) WHERE key IS NOT NULL) g
    ORDER BY g.key
    ON CONFLICT (kind, key) DO UPDATE SET full_at = x.full_at WHERE false;
    _now := holdfast.clock();
    IF EXISTS (SELECT 1 FROM holdfast.rule)
        OR EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = ANY (_queues) AND s.paused) THEN
        RETURN;  -- said while we waited
    END IF;
    IF EXISTS (SELECT 1 FROM holdfast.gate d WHERE d.due_at <= _now AND d.freed) OR EXISTS (
        SELECT 1 FROM unnest(_limits, _sizes) AS l (key, size) WHERE l.key IS NOT NULL GROUP BY l.key
        HAVING min(l.size) < count(*) + (SELECT count(*) FROM holdfast.slot s WHERE s.key = l.key AND s.kind = 'limit'))
    THEN
        RETURN;
    END IF;

    RETURN QUERY
    WITH taken AS (
        DELETE FROM holdfast.ready r WHERE r.ctid = ANY (_at)
        RETURNING r.seq, r.tag, r.job_id, r.attempt, r.priority, r.losses, r.crashes, r.queue
    ), leased AS (
        INSERT INTO holdfast.active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes,
                                     attached, queue)
        SELECT _era + nextval('holdfast.run'), t.seq, t.tag, _now, t.job_id, _worker, t.attempt + 1, t.priority, t.losses,
               t.crashes, true, t.queue
        FROM taken t RETURNING job_id, token, attempt, queue, priority, tag, losses
    ), job AS MATERIALIZED (
        SELECT a.job_id, a.token, a.attempt, j.task, a.queue, a.priority, j.payload, j.options, j.max_attempts, j.tenant,
               a.losses >= 2 AS alone, j.headers, j.limit_key
        FROM leased a CROSS JOIN LATERAL (
            SELECT b.task, b.payload, b.options, b.max_attempts, b.tenant, b.headers, b.limit_key FROM holdfast.job b
            WHERE b.id = a.job_id LIMIT 1
        ) j
    ), held AS (
        INSERT INTO holdfast.slot (job_id, kind, key) SELECT j.job_id, 'limit', j.limit_key FROM job j
        WHERE j.limit_key IS NOT NULL
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change) SELECT queue, -count(*) FROM leased GROUP BY queue
    ), reached AS (
        INSERT INTO holdfast.lane_reached AS x (tag, priority, stripe, queue)
        SELECT max(tag), priority, ('x' || right(_worker::text, 1))::bit(4)::int4, queue
        FROM leased WHERE tag > 0 GROUP BY queue, priority ORDER BY queue COLLATE "C", priority
        ON CONFLICT (queue, priority, stripe) DO UPDATE SET tag = excluded.tag WHERE excluded.tag > x.tag
    )
    SELECT j.job_id, j.token, j.attempt, j.task, j.queue, j.priority, j.payload, j.options, j.max_attempts, j.tenant,
           j.alone, j.headers
    FROM job j;
END $$;

-- look_after: slots of these gates were freed. Who waits there is looked after next; what nobody uses is forgotten.
-- Answers with those that it had in hand, and whether somebody waits there.
-- `_patient`: wait for whoever has one in hand; else it is passed over.
CREATE FUNCTION holdfast.look_after(_kinds text[], _keys text[], _patient bool)
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
               (g.full_at IS NULL OR g.full_at <= _now)
               AND NOT EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.key = g.key AND s.kind = g.kind) AS unused
        FROM holdfast.gate g WHERE g.ctid = ANY (_held)
    ), forgotten AS (
        DELETE FROM holdfast.gate g WHERE g.ctid = ANY (ARRAY(SELECT at FROM seen WHERE unused AND NOT waited))
    ), due AS (
        UPDATE holdfast.gate g SET due_at = _now, freed = true
        WHERE g.ctid = ANY (ARRAY(SELECT at FROM seen WHERE waited))
    )
    SELECT s.kind, s.key, s.waited FROM seen s;
END $$;

-- settle_runs: as before (0006); who is parked is counted.
CREATE OR REPLACE FUNCTION holdfast.settle_runs(
    _worker uuid, _ids uuid[], _tokens int8[], _states text[], _causes text[], _results bytea[], _delays_s float8[],
    _reasons text[], _keys text[], _crashed bool[], _error_types text[], _error_messages text[], _tracebacks text[],
    _fingerprints text[], _words text[], _max_crashes int4, _attempts_kept int4
) RETURNS TABLE (token int8, state text) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH moment AS MATERIALIZED (
        SELECT holdfast.clock() AS now
    ), run AS (
        DELETE FROM holdfast.active a
        USING unnest(_ids, _tokens, _states, _causes, _results, _delays_s, _reasons, _keys, _crashed, _error_types,
                     _error_messages, _tracebacks, _fingerprints, _words)
            AS s (job_id, token, state, cause, result, delay_s, reason, key, crashed, error_type, error_message,
                  traceback, fingerprint, words)
        WHERE a.job_id = ANY (ARRAY[s.job_id]) AND a.token = s.token AND (a.worker = _worker) IS TRUE AND NOT a.attached
            AND (s.crashed AND a.crashes + 1 >= _max_crashes) IS NOT TRUE
        RETURNING a.token, a.seq, a.tag, a.started_at, a.job_id, a.attempt, a.priority, a.losses, a.queue,
                  (a.crashes + CASE WHEN s.crashed THEN 1 ELSE 0 END)::int2 AS crashes,
                  CASE WHEN a.cancel_reason IS NOT NULL AND s.state IN ('scheduled', 'ready', 'parked')
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
        -- A job may snooze for years: the newest runs are kept. This one is not seen here yet.
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
               r.attempt - CASE WHEN r.cause = 'retry' THEN 0 ELSE 1 END, r.losses, r.crashes, false, r.queue
        FROM moment, run r WHERE r.state = 'scheduled'
    ), parked AS (
        INSERT INTO holdfast.parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
        SELECT r.seq, r.tag, moment.now, r.job_id, r.attempt - 1, r.losses, r.crashes, false, r.queue, r.reason, r.key
        FROM moment, run r WHERE r.state = 'parked'
    ), returned AS (
        INSERT INTO holdfast.ready (seq, tag, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
        SELECT r.seq, r.tag, moment.now, r.job_id, r.priority, r.attempt - 1, r.losses, r.crashes, false, r.queue
        FROM moment, run r WHERE r.state = 'ready'
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change, parked)
        SELECT r.queue, count(*) FILTER (WHERE r.state = 'ready'), count(*) FILTER (WHERE r.state = 'parked')
        FROM run r WHERE r.state IN ('ready', 'parked') GROUP BY r.queue
    )
    SELECT r.token, r.state FROM run r;
END $$;

-- settle_attached: what the two functions below leave because something hangs on it: deadlines are dropped, slots freed.
-- Only what others wait for (a member of a join), and what would end as poison, is left for the longer way.
-- A row without a token: somebody waits at a gate where a slot was freed.
CREATE FUNCTION holdfast.settle_attached(
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
    _freed_kinds text[];
    _freed_keys text[];
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
    ), freed AS (
        DELETE FROM holdfast.slot s WHERE s.job_id = ANY (ARRAY(SELECT r.job_id FROM run r)) RETURNING s.kind, s.key
    ), gates AS MATERIALIZED (
        SELECT DISTINCT f.kind, f.key FROM freed f
    )
    SELECT (SELECT array_agg(r.job_id) FROM run r), (SELECT array_agg(r.token) FROM run r),
           (SELECT array_agg(r.state) FROM run r), (SELECT array_agg(g.kind) FROM gates g),
           (SELECT array_agg(g.key) FROM gates g)
    INTO _settled_ids, _settled, _went, _freed_kinds, _freed_keys;

    -- With fresh eyes: somebody may have begun to wait for one of them while we waited for its row.
    IF EXISTS (SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids)) THEN
        RAISE EXCEPTION 'a run has been joined meanwhile' USING ERRCODE = '40001';
    END IF;
    IF _freed_keys IS NOT NULL THEN
        RETURN QUERY
        SELECT NULL::int8, NULL::text FROM holdfast.look_after(_freed_kinds, _freed_keys, true) l WHERE l.waited LIMIT 1;
    END IF;
    RETURN QUERY SELECT e.token, e.state FROM unnest(_settled, _went) AS e (token, state);
END $$;

-- settle_successes: as settle_jobs (0004), also for what something hangs on (`settle_attached`). `_breakers`: those that the
-- runs tell of their success; where one of them is not closed that has consequences, and nothing is done here.
-- `_attached`: look first for what something hangs on; what is found, and what is done, is the same.
CREATE FUNCTION holdfast.settle_successes(
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
    _freed_kinds text[];
    _freed_keys text[];
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
    ), freed AS (
        DELETE FROM holdfast.slot s WHERE s.job_id = ANY (ARRAY(SELECT r.job_id FROM run r)) RETURNING s.kind, s.key
    ), gates AS MATERIALIZED (
        SELECT DISTINCT f.kind, f.key FROM freed f
    )
    SELECT (SELECT array_agg(r.job_id) FROM run r), (SELECT array_agg(r.token) FROM run r),
           (SELECT array_agg(g.kind) FROM gates g), (SELECT array_agg(g.key) FROM gates g)
    INTO _settled_ids, _settled, _freed_kinds, _freed_keys;
    -- With fresh eyes: somebody may have begun to wait for one of them while we waited for its row.
    IF EXISTS (SELECT 1 FROM holdfast.member) AND EXISTS (
        SELECT 1 FROM holdfast.member m WHERE m.job_id = ANY (_settled_ids)) THEN
        RAISE EXCEPTION 'a run has been joined meanwhile' USING ERRCODE = '40001';
    END IF;
    IF _freed_keys IS NOT NULL AND EXISTS (
        SELECT 1 FROM holdfast.look_after(_freed_kinds, _freed_keys, true) l WHERE l.waited) THEN
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

-- settle_outcomes: as settle_runs (0006), in the same way.
CREATE FUNCTION holdfast.settle_outcomes(
    _worker uuid, _ids uuid[], _tokens int8[], _states text[], _causes text[], _results bytea[], _delays_s float8[],
    _reasons text[], _keys text[], _crashed bool[], _error_types text[], _error_messages text[], _tracebacks text[],
    _fingerprints text[], _words text[], _max_crashes int4, _attempts_kept int4, _breakers text[]
) RETURNS TABLE (token int8, state text) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
    _settled int4;
BEGIN
    IF cardinality(_breakers) > 0 AND EXISTS (
        SELECT 1 FROM unnest(_breakers) AS n (name) JOIN holdfast.breaker b ON b.name = n.name
        WHERE b.open_until IS NOT NULL) THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT r.token, r.state FROM holdfast.settle_runs(
        _worker, _ids, _tokens, _states, _causes, _results, _delays_s, _reasons, _keys, _crashed, _error_types,
        _error_messages, _tracebacks, _fingerprints, _words, _max_crashes, _attempts_kept) r;
    GET DIAGNOSTICS _settled = ROW_COUNT;
    IF _settled < cardinality(_ids) THEN
        RETURN QUERY SELECT t.token, t.state FROM holdfast.settle_attached(
            _worker, _ids, _tokens, _states, _causes, _results, _delays_s, _reasons, _keys, _crashed, _error_types,
            _error_messages, _tracebacks, _fingerprints, _words, _max_crashes, _attempts_kept) t;
    END IF;
END $$;

-- Whoever may read, enqueue, claim or decide needs some of the new tables and functions for it.
CREATE FUNCTION holdfast.give_rights(_table regclass, _privilege text, _rights text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = _table AND a.privilege_type = _privilege AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT %s TO %s', _rights, _role);
    END LOOP;
END $$;
SELECT holdfast.give_rights('holdfast.job', 'SELECT',
    'SELECT ON holdfast.gate, holdfast.breaker, holdfast.rule, holdfast.setting_change, holdfast.unique_key'),
  holdfast.give_rights('holdfast.job', 'INSERT', 'INSERT, UPDATE, DELETE ON holdfast.gate'),
  holdfast.give_rights('holdfast.job', 'INSERT', 'INSERT, UPDATE ON holdfast.unique_key'),
  holdfast.give_rights('holdfast.job', 'INSERT', 'EXECUTE ON FUNCTION holdfast.insert_gated_jobs, holdfast.take_unique, '
    'holdfast.hold_gates, holdfast.look_after, holdfast.said'),
  holdfast.give_rights('holdfast.active', 'INSERT', 'INSERT, UPDATE, DELETE ON holdfast.breaker'),
  holdfast.give_rights('holdfast.active', 'INSERT', 'DELETE ON holdfast.unique_key'),
  holdfast.give_rights('holdfast.active', 'INSERT', 'EXECUTE ON FUNCTION holdfast.pick_jobs, holdfast.claim_limited, holdfast.claim_picked, '
    'holdfast.settle_attached, holdfast.settle_successes, holdfast.settle_outcomes'),
  holdfast.give_rights('holdfast.queue_setting', 'INSERT', 'DELETE ON holdfast.unique_key'),
  holdfast.give_rights('holdfast.queue_setting', 'INSERT', 'INSERT, UPDATE, DELETE ON holdfast.rule'),
  holdfast.give_rights('holdfast.queue_setting', 'INSERT', 'INSERT, UPDATE, DELETE ON holdfast.breaker'),
  holdfast.give_rights('holdfast.queue_setting', 'INSERT', 'INSERT ON holdfast.setting_change');
DROP FUNCTION holdfast.give_rights;
