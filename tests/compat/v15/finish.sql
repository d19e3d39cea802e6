-- finish: a run succeeds inside a transaction of its own, together with its effect.

-- name: prepare
-- From here to the commit nobody waits for long, neither for us nor we for others: a process that is stopped between
-- the two would keep its job from everybody. And what is committed is on disk, whatever the user has set.
SELECT set_config('lock_timeout', '5s', true), set_config('idle_in_transaction_session_timeout', '10s', true),
       CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
            THEN set_config('synchronous_commit', 'on', true) END

-- name: settle
-- Fenced by job, token and worker; no row: the lease has passed on.
WITH run AS (
    DELETE FROM holdfast.active WHERE job_id = $1 AND token = $2 AND worker = $3
    RETURNING token, started_at, job_id, worker, attempt, attached
), ended AS (
    INSERT INTO holdfast.done (token, started_at, ended_at, job_id, worker, attempt, result)
    SELECT token, started_at, holdfast.clock(), job_id, worker, attempt, $4::bytea FROM run
)
SELECT attached FROM run

-- name: arrive
-- Counted after the commit: counting locks the join, and others would wait for it.
INSERT INTO holdfast.arrival (join_id, job_id, counted)
SELECT join_id, job_id, false FROM holdfast.member WHERE job_id = $1 ORDER BY join_id ON CONFLICT DO NOTHING

-- name: count_arrivals
UPDATE holdfast.arrival a SET counted = true FROM holdfast.member m
WHERE m.job_id = $1 AND a.join_id = m.join_id AND a.job_id = m.job_id AND NOT a.counted
RETURNING a.join_id

-- name: lease
-- Waits for the transaction whose outcome is asked for: it has deleted this row. A row means that it was rolled back.
SELECT true FROM holdfast.active WHERE job_id = $1 AND token = $2 AND worker = $3 FOR UPDATE
