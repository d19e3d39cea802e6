-- oldest: 4
-- settle_runs: any outcome of ordinary jobs, all of a flush in one statement, fenced by job, token and worker. Answers
-- with the tokens of the runs that it has settled, and where their jobs are now. Left for the longer way, and untouched:
-- what has something attached, what would end as poison, and everything that is no longer this worker's.
--
-- `_states` says where each job is to go, `_causes` why its run was no success. A job that somebody asked to cancel does
-- not run again. A flush of nothing but successes goes by `settle_jobs`, which has less to look at. An array of what no
-- settlement has may be empty.
CREATE FUNCTION holdfast.settle_runs(
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
        WHERE a.job_id = s.job_id AND a.token = s.token AND (a.worker = _worker) IS TRUE AND NOT a.attached
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
        WHERE r.cause IS NOT NULL AND t.job_id = r.job_id AND t.token <= (
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
        INSERT INTO holdfast.depth_change (queue, change)
        SELECT r.queue, count(*) FROM run r WHERE r.state = 'ready' GROUP BY r.queue
    )
    SELECT r.token, r.state FROM run r;
END $$;

-- Whoever may settle by the older function may do so by this one.
DO $$
DECLARE
    _role regrole;
BEGIN
    FOR _role IN
        SELECT a.grantee FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
        WHERE p.oid = 'holdfast.settle_jobs'::regproc AND a.privilege_type = 'EXECUTE' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION holdfast.settle_runs TO %s', _role);
    END LOOP;
END $$;
