-- oldest: 4
-- insert_new_jobs: ordinary jobs, ready at once. An id that is there already is an error (unique_violation), and then
-- nothing is inserted: whoever repeats an insert goes on with `insert_jobs`, which leaves such ids alone. Not having to
-- look for them first saves a third of the time and a record in the log for every job.
--
-- What jobs have in common is sent once: `_kinds` says for each job which task, queue, priority, tenant and number of
-- attempts are its own. An array of what no job has may be empty.
CREATE FUNCTION holdfast.insert_new_jobs(
    _ids uuid[], _payloads bytea[], _kinds int4[], _tasks text[], _queues text[], _priorities int2[], _tenants text[],
    _max_attempts int4[], _options bytea[], _tags text[], _metadata bytea[], _headers bytea[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    _now timestamptz := holdfast.clock();
BEGIN
    INSERT INTO holdfast.job (id, created_at, priority, max_attempts, task, queue, tenant, payload, options, tags,
                              metadata, headers)
    SELECT j.id, _now, _priorities[j.kind], _max_attempts[j.kind], _tasks[j.kind], _queues[j.kind], _tenants[j.kind],
           j.payload, j.options,
           CASE WHEN j.tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(j.tags::jsonb)) END,
           j.metadata, j.headers
    FROM unnest(_ids, _kinds, _payloads, _options, _tags, _metadata, _headers)
        AS j (id, kind, payload, options, tags, metadata, headers);

    INSERT INTO holdfast.ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
    SELECT nextval('holdfast.place'), _now, j.id, _priorities[j.kind], 0, 0, 0, false, _queues[j.kind]
    FROM unnest(_ids, _kinds) AS j (id, kind);

    INSERT INTO holdfast.depth_change (queue, change)
    SELECT _queues[j.kind], count(*) FROM unnest(_kinds) AS j (kind) GROUP BY 1;
END $$;

-- Whoever may enqueue by the older function may do so by this one.
DO $$
DECLARE
    _role regrole;
BEGIN
    FOR _role IN
        SELECT a.grantee FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'holdfast.insert_jobs'::regproc AND a.privilege_type = 'EXECUTE' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.insert_new_jobs TO %s', _role);
    END LOOP;
END $$;

-- claim_jobs: as before (0003), but the steps of the statement hand on only what the next ones need.
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

-- How long a worker's event loop last took to answer, in seconds.
ALTER TABLE holdfast.worker ADD COLUMN lag_s float8 NOT NULL DEFAULT 0;
