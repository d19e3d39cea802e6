-- oldest: 4
-- claim_entries: the claim of jobs that a transport has announced, by their ids. What cannot be claimed is not in the
-- answer: it was taken, has ended, has moved on, its queue is paused, or the store's order decides about it (it has a
-- tag, or must run alone). Same fence, same lease, same answer as claim_jobs; jobs with something attached, and those
-- that rules concern, are passed over here as they are there, and claimed by themselves.
--
-- `_queues`: those that the announcements are of. Whatever somebody writes into a stream, nobody gets a job of a queue
-- that he does not serve.
CREATE FUNCTION holdfast.claim_entries(_worker uuid, _queues text[], _job_ids uuid[]) RETURNS TABLE (
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
    ), open AS MATERIALIZED (
        SELECT array_agg(q.queue) AS queues, coalesce(array_agg(q.queue) FILTER (WHERE me.ruled AND EXISTS (
                   SELECT 1 FROM holdfast.rule c WHERE c.concerns = ANY (ARRAY['', q.queue]))), '{}') AS ruled
        FROM me CROSS JOIN unnest(_queues) AS q (queue)
        WHERE NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = q.queue AND s.paused)
    ), head AS MATERIALIZED (
        SELECT h.at, h.attached OR h.queue = ANY (open.ruled) AS attached, h.tag, h.seq, h.job_id, h.queue, h.priority
        FROM open CROSS JOIN unnest(_job_ids) AS e (job_id) CROSS JOIN LATERAL (
            SELECT r.ctid AS at, r.attached, r.tag, r.seq, r.job_id, r.queue, r.priority FROM holdfast.ready r
            WHERE r.job_id = e.job_id AND r.tag = 0 AND r.losses < 2 AND r.queue = ANY (open.queues)
            FOR UPDATE SKIP LOCKED
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
    SELECT NULL, NULL, NULL, NULL, d.queue, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'closed', NULL, NULL
    FROM me CROSS JOIN holdfast.depth d WHERE d.closed AND d.queue = ANY (_queues);

    IF NOT FOUND AND NOT EXISTS (SELECT 1 FROM holdfast.worker WHERE id = _worker AND lease_until > holdfast.clock()) THEN
        RAISE EXCEPTION 'worker % holds no valid lease', _worker USING ERRCODE = 'HF001';
    END IF;
END $$;

DO $$
DECLARE
    _role text;
BEGIN
    FOR _role IN
        SELECT DISTINCT a.grantee::regrole::text FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.oid = 'holdfast.active'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.claim_entries TO %s', _role);
    END LOOP;
END $$;
