-- oldest: 4
-- Fairness between tenants: tags by which a lane is ordered (holdfast/core/tenancy.py), and age as a watermark.

-- Somebody has named a tenant in this queue: from then on all of its jobs get tags.
ALTER TABLE holdfast.depth ADD COLUMN tenanted bool NOT NULL DEFAULT false;

-- The last tag of each tenant in a lane, and the job that got it; 0: none yet. Forgotten once the lane has come that far.
CREATE TABLE holdfast.tenant_tag (
    tag       int8 NOT NULL,
    job_id    uuid NOT NULL,
    priority  int2 NOT NULL,
    queue     text COLLATE "C" NOT NULL,
    tenant    text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, priority, tenant)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- The same, given inside a user's transaction, where nothing may be changed that others wait for. Folded later.
CREATE TABLE holdfast.tenant_note (
    tag       int8 NOT NULL,
    job_id    uuid NOT NULL,
    priority  int2 NOT NULL,
    queue     text COLLATE "C" NOT NULL,
    tenant    text COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX tenant_note_by_tenant ON holdfast.tenant_note (queue, priority, tenant, tag);

-- How far a lane has come: the largest tag that was claimed. In several rows, so that claims do not wait for each other.
CREATE TABLE holdfast.lane_reached (
    tag       int8 NOT NULL,
    priority  int2 NOT NULL,
    stripe    int2 NOT NULL,
    queue     text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, priority, stripe)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- What operators set for a tenant.
CREATE TABLE holdfast.tenant_setting (
    tenant  text COLLATE "C" PRIMARY KEY,
    weight  float8 NOT NULL
);

-- Beside the watermarks on depth: those on the age of the oldest ready job, in seconds.
ALTER TABLE holdfast.queue_setting ADD COLUMN high_age_s float8, ADD COLUMN low_age_s float8;

-- The rule of core/tenancy.py (`cost_of`, `next_tag`).
CREATE FUNCTION holdfast.cost_of(_weight float8) RETURNS int8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _weight BETWEEN 0.01 AND 100 THEN floor(10000 / _weight + 0.5)::int8 ELSE 10000 END
$$;
CREATE FUNCTION holdfast.next_tag(_reached int8, _last int8, _cost int8, _waiting bool) RETURNS int8
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _last = 0 THEN _reached WHEN _last <= _reached THEN greatest(_reached, _last + _cost)
                WHEN _waiting THEN _last + _cost ELSE _reached END
$$;

-- The tag of this tenant's last job that still waits, where the one that got `_last` does not; as far as it is among the
-- thousand before it.
CREATE FUNCTION holdfast.last_waiting(
    _queue text, _priority int2, _tenant text, _reached int8, _last int8, _cost int8
) RETURNS int8 LANGUAGE sql STABLE AS $$
    WITH seen AS MATERIALIZED (
        SELECT r.tag, r.job_id FROM holdfast.ready r
        WHERE r.queue = _queue COLLATE "C" AND r.priority = _priority AND r.tag < _last AND r.tag > _reached - _cost
        ORDER BY r.tag DESC, r.seq DESC LIMIT 1000
    )
    SELECT max(s.tag) FROM seen s JOIN holdfast.job j ON j.id = s.job_id WHERE j.tenant = _tenant COLLATE "C"
$$;

-- give_tags: the first tag for each of these tenants in a lane, and what each further job costs; each of them once, with
-- the number of its jobs and the last of them.
-- Whoever gives tags to the same tenant waits until we commit. All lock in the same order, so nobody waits in a circle.
CREATE FUNCTION holdfast.give_tags(
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
                        OR EXISTS (SELECT 1 FROM holdfast.ready r WHERE r.job_id = k.job_id AND r.tag = k.tag) THEN k.tag
                   ELSE holdfast.last_waiting(g.queue, g.priority, g.tenant, l.reached, k.tag, c.cost) END AS tag) w
    ), kept AS (
        UPDATE holdfast.tenant_tag t SET tag = g.first + (g.count - 1) * g.cost, job_id = g.job_id
        FROM given g WHERE t.ctid = g.at
    )
    SELECT g.number::int4, g.first, g.cost FROM given g;
END $$;

-- guess_tags: the same inside a user's transaction: reads, and leaves a note. Two that are open at once may get the same.
CREATE FUNCTION holdfast.guess_tags(
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
                        OR EXISTS (SELECT 1 FROM holdfast.ready r WHERE r.job_id = k.job_id AND r.tag = k.tag) THEN k.tag
                   ELSE holdfast.last_waiting(g.queue, g.priority, g.tenant, l.reached, k.tag, c.cost) END AS tag) w
    ), noted AS (
        INSERT INTO holdfast.tenant_note (tag, job_id, priority, queue, tenant)
        SELECT g.first + (g.count - 1) * g.cost, g.job_id, g.priority, g.queue, g.tenant FROM given g
    )
    SELECT g.number::int4, g.first, g.cost FROM given g;
END $$;

-- insert_fair_jobs: as insert_new_jobs (0005), for queues with tenants. `_chains` says for each kind of job which of the
-- tenants in lanes (`_chain_…`) it belongs to, 0: none; `_ranks` for each job how many of that chain come before it.
CREATE FUNCTION holdfast.insert_fair_jobs(
    _ids uuid[], _payloads bytea[], _kinds int4[], _tasks text[], _queues text[], _priorities int2[], _tenants text[],
    _max_attempts int4[], _options bytea[], _tags text[], _metadata bytea[], _headers bytea[], _chains int4[],
    _ranks int4[], _chain_queues text[], _chain_priorities int2[], _chain_tenants text[], _chain_counts int4[],
    _chain_job_ids uuid[]
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
                              metadata, headers)
    SELECT j.id, _now, _priorities[j.kind], _max_attempts[j.kind], _tasks[j.kind], _queues[j.kind], _tenants[j.kind],
           j.payload, j.options,
           CASE WHEN j.tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(j.tags::jsonb)) END,
           j.metadata, j.headers
    FROM unnest(_ids, _kinds, _payloads, _options, _tags, _metadata, _headers)
        AS j (id, kind, payload, options, tags, metadata, headers);

    SELECT array_agg(g.first ORDER BY g.number), array_agg(g.cost ORDER BY g.number) INTO _firsts, _costs
    FROM holdfast.give_tags(_chain_queues, _chain_priorities, _chain_tenants, _chain_counts, _chain_job_ids) g;

    INSERT INTO holdfast.ready (seq, tag, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
    SELECT nextval('holdfast.place'), coalesce(_firsts[_chains[j.kind]] + j.rank * _costs[_chains[j.kind]], 0), _now,
           j.id, _priorities[j.kind], 0, 0, 0, false, _queues[j.kind]
    FROM unnest(_ids, _kinds, _ranks) AS j (id, kind, rank);

    INSERT INTO holdfast.depth_change (queue, change)
    SELECT _queues[j.kind], count(*) FROM unnest(_kinds) AS j (kind) GROUP BY 1;
END $$;

-- claim_jobs: as before (0005), and where jobs have tags it says how far their lanes have come.
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
        SELECT id FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE
    ), asked AS MATERIALIZED (
        SELECT l.* FROM me CROSS JOIN unnest(_queues, _priorities, _tags, _seqs, _quotas)
            AS l (queue, priority, tag, seq, quota)
        WHERE NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = l.queue AND s.paused)
    ), head AS MATERIALIZED (
        SELECT l.queue, l.priority, h.* FROM asked l CROSS JOIN LATERAL (
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

-- Whoever may enqueue, and whoever may claim, needs some of the new tables and functions for it.
DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.job'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT SELECT ON holdfast.tenant_tag, holdfast.tenant_note, holdfast.lane_reached, '
                       'holdfast.tenant_setting TO %s', _role);
        EXECUTE format('GRANT INSERT, UPDATE ON holdfast.tenant_tag TO %s', _role);
        EXECUTE format('GRANT INSERT ON holdfast.tenant_note TO %s', _role);
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.cost_of, holdfast.next_tag, holdfast.last_waiting, '
                       'holdfast.give_tags, holdfast.guess_tags, holdfast.insert_fair_jobs TO %s', _role);
    END LOOP;
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.active'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT INSERT, UPDATE ON holdfast.lane_reached TO %s', _role);
        EXECUTE format('GRANT DELETE ON holdfast.tenant_tag, holdfast.tenant_note TO %s', _role);
    END LOOP;
END $$;
