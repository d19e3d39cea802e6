-- claim_jobs: the head of each lane, up to its quota and from its floor on: `ready` → `active`, under a lease that is
-- valid now. One statement; the worker's row is locked first, so that whoever reaps it comes before or after all of
-- this. Each row of the answer is what a worker needs of a job, and says what it is: a `job`; an `attached` job, which was passed over and is to be
-- claimed by itself; or news of the lanes asked for: one that must run alone waits (`lonely`), a queue is `closed`.
--
-- The planner is told what to do: the statistics of tables that are mostly empty say nothing about the moment when
-- they are not. Rows are deleted by their physical place, which the locks hold, without a second search.
CREATE FUNCTION holdfast.claim_jobs(
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
        DELETE FROM holdfast.ready r WHERE r.ctid = ANY (ARRAY(SELECT at FROM head WHERE NOT attached)) RETURNING r.*
    ), leased AS (
        INSERT INTO holdfast.active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes,
                                     attached, queue)
        SELECT moment.era + nextval('holdfast.run'), t.seq, t.tag, moment.now, t.job_id, _worker, t.attempt + 1,
               t.priority, t.losses, t.crashes, false, t.queue
        FROM moment, taken t RETURNING *
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change) SELECT queue, -count(*) FROM leased GROUP BY queue
    )
    SELECT a.job_id, a.token, a.attempt, j.task, a.queue, a.priority, j.payload, j.options, j.max_attempts,
           coalesce(j.tenant, ''), false, j.headers, 'job', a.tag, a.seq
    FROM leased a LEFT JOIN LATERAL (SELECT * FROM holdfast.job b WHERE b.id = a.job_id LIMIT 1) j ON true
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
