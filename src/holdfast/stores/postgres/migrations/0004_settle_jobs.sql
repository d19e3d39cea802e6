-- settle_jobs: the ordinary end of ordinary jobs: `active` → `done` as succeeded, in one statement, fenced by job,
-- token and worker. Answers with the tokens of the runs that it has ended. What has something attached is left for the longer way,
-- and so is everything that is no longer this worker's. (`IS TRUE` keeps the planner from looking for each job among
-- all of the worker's, by that index.)
CREATE FUNCTION holdfast.settle_jobs(_worker uuid, _ids uuid[], _tokens int8[], _results bytea[])
RETURNS SETOF int8 LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET lock_timeout = '5s'
AS $$
BEGIN
    RETURN QUERY
    WITH moment AS MATERIALIZED (
        SELECT holdfast.clock() AS now
    ), run AS (
        DELETE FROM holdfast.active a USING unnest(_ids, _tokens, _results) AS s (job_id, token, result)
        WHERE a.job_id = s.job_id AND a.token = s.token AND (a.worker = _worker) IS TRUE AND NOT a.attached
        RETURNING a.token, a.started_at, a.job_id, a.attempt, s.result
    )
    INSERT INTO holdfast.done (token, started_at, ended_at, job_id, worker, attempt, result)
    SELECT r.token, r.started_at, moment.now, r.job_id, _worker, r.attempt, r.result FROM moment, run r
    RETURNING token;
END $$;
