-- sweep: the net under everything else. On a healthy store each of these finds nothing but old keys.

-- name: drop_keys
DELETE FROM holdfast.idempotency_key WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.idempotency_key WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING true

-- name: drop_unique_keys
DELETE FROM holdfast.unique_key WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.unique_key WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING true

-- name: uncounted
UPDATE holdfast.arrival SET counted = true WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast.arrival WHERE NOT counted LIMIT $1 FOR UPDATE SKIP LOCKED))
RETURNING join_id

-- name: releasable
-- Blocked jobs all of whose members have ended, whatever the count says; held here, and by nobody else.
SELECT b.job_id FROM holdfast.blocked b WHERE NOT EXISTS (
    SELECT 1 FROM holdfast.member m JOIN holdfast.job j ON j.id = m.job_id WHERE m.join_id = b.job_id
        AND NOT EXISTS (SELECT 1 FROM holdfast.arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM holdfast.done d WHERE d.job_id = m.job_id)
        AND NOT EXISTS (SELECT 1 FROM holdfast.dead d WHERE d.job_id = m.job_id)
) ORDER BY b.job_id LIMIT $1 FOR UPDATE SKIP LOCKED

-- name: step_forward
-- Nobody stands behind the others of a lane: a program of an earlier version lets jobs go from where they wait without
-- taking off what puts them behind there (`parking.BEHIND`). With tags it makes no difference.
UPDATE holdfast.ready SET seq = seq - 4611686018427387904 WHERE ctid = ANY (ARRAY(
    SELECT h.ctid FROM holdfast.depth d CROSS JOIN generate_series(0, 9) AS p (priority) CROSS JOIN LATERAL (
        SELECT r.ctid FROM holdfast.ready r WHERE r.queue = d.queue AND r.priority = p.priority AND r.tag = 0
            AND r.seq >= 4611686018427387904 ORDER BY r.seq LIMIT $1 FOR UPDATE SKIP LOCKED) h LIMIT $1))

-- name: alone
SELECT pg_try_advisory_xact_lock(hashtextextended('holdfast.sweep', 0))

-- name: wrong_counts
-- What is counted against what is there, in one look, up to a limit: two numbers beyond it are taken for equal. A queue
-- whose rows go on beyond it while its count does not is told without a change: it is to be counted as a whole.
SELECT k.queue,
       CASE WHEN r.ready < $1 THEN r.ready - k.ready WHEN k.ready >= $1 THEN 0 END AS change,
       CASE WHEN p.parked < $1 THEN p.parked - k.parked WHEN k.parked >= $1 THEN 0 END AS parked
FROM (
    SELECT queue, sum(ready)::int8 AS ready, sum(parked)::int8 AS parked FROM (
        SELECT queue, ready, parked FROM holdfast.depth
        UNION ALL SELECT queue, change, parked FROM holdfast.depth_change
        UNION ALL SELECT queue, 0, 0 FROM (
            WITH RECURSIVE lane AS (
                (SELECT queue FROM holdfast.ready ORDER BY queue LIMIT 1)
                UNION ALL
                SELECT n.queue FROM lane l CROSS JOIN LATERAL (
                    SELECT x.queue FROM holdfast.ready x WHERE x.queue > l.queue ORDER BY x.queue LIMIT 1) n
            ) SELECT queue FROM lane) there
        UNION ALL SELECT queue, 0, 0 FROM (
            WITH RECURSIVE line AS (
                (SELECT queue FROM holdfast.parked ORDER BY queue LIMIT 1)
                UNION ALL
                SELECT n.queue FROM line l CROSS JOIN LATERAL (
                    SELECT x.queue FROM holdfast.parked x WHERE x.queue > l.queue ORDER BY x.queue LIMIT 1) n
            ) SELECT queue FROM line) waiting
    ) c GROUP BY queue
) k CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1 FROM holdfast.ready x WHERE x.queue = k.queue LIMIT $1) n) AS r (ready)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT 1 FROM holdfast.parked x WHERE x.queue = k.queue LIMIT $1) n) AS p (parked)
WHERE least(k.ready, $1) <> r.ready OR least(k.parked, $1) <> p.parked

-- name: count_again
-- The same for one queue, to the end.
SELECT $1, (SELECT count(*) FROM holdfast.ready WHERE queue = $1)
         - (SELECT coalesce(sum(ready), 0) FROM holdfast.depth WHERE queue = $1)::int8
         - (SELECT coalesce(sum(change), 0) FROM holdfast.depth_change WHERE queue = $1)::int8,
           (SELECT count(*) FROM holdfast.parked WHERE queue = $1)
         - (SELECT coalesce(sum(parked), 0) FROM holdfast.depth WHERE queue = $1)::int8
         - (SELECT coalesce(sum(parked), 0) FROM holdfast.depth_change WHERE queue = $1)::int8
