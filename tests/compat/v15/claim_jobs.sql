-- claim_jobs: `ready` → `active` under a valid lease; the worker's row is checked and held in the same transaction.

-- name: ordinary
SELECT * FROM holdfast.claim_jobs($1, $2, $3, $4, $5, $6)

-- name: limited
-- The same, where jobs with a limit are expected.
SELECT * FROM holdfast.claim_limited_jobs($1, $2, $3, $4, $5, $6)

-- name: hold_lease
SELECT 1 FROM holdfast.worker WHERE id = $1 AND lease_until > holdfast.clock() FOR KEY SHARE

-- name: pick_alone
-- The oldest job of a lane that must run alone; its columns are those of the function `pick_jobs`.
SELECT r.job_id, r.queue, r.priority, r.attempt, r.losses, r.crashes, r.attached, r.tag, r.seq,
       j.task, j.payload, j.options, j.max_attempts, j.tenant, j.headers, j.expires_at, j.gates,
       ARRAY(SELECT s.kind || ' ' || s.key FROM holdfast.slot s WHERE s.job_id = r.job_id) AS slots,
       EXISTS (SELECT 1 FROM holdfast.rule) AS ruled, holdfast.said() AS said, holdfast.clock() AS now
FROM holdfast.ready r LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[r.job_id])
WHERE r.queue = $1 AND r.priority = $2 AND r.losses >= 2
    AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = r.queue AND s.paused)
ORDER BY r.tag, r.seq LIMIT 1 FOR UPDATE OF r SKIP LOCKED

-- name: lonely_lanes
SELECT DISTINCT queue, priority FROM holdfast.ready WHERE losses >= 2

-- name: any_parked
-- Asked often, mostly for nothing: no transaction for that, which a process that is stopped would leave open, with its
-- own row locked, so that nobody could reap it before the server ends it.
SELECT 1 FROM holdfast.parked WHERE reason = $1 AND key = ANY ($2) LIMIT 1

-- name: leave_unknown
-- The oldest of the first few of each task. Among more than these there may be one in a lane that is asked for: it is
-- unparked in time, as are those that must run alone, and those whose bodies are gone.
WITH heads AS (
    SELECT head.* FROM unnest($2::text[]) AS asked (key), LATERAL (
        SELECT p.job_id, p.seq, j.queue, j.priority
        FROM holdfast.parked p JOIN holdfast.job j ON j.id = ANY (ARRAY[p.job_id])
        WHERE p.reason = $1 AND p.key = asked.key AND p.losses < 2
            AND p.seq <= (SELECT max(few.seq) FROM (
                SELECT seq FROM holdfast.parked WHERE reason = $1 AND key = asked.key ORDER BY seq LIMIT 100) few)
            AND (j.queue, j.priority) IN (SELECT * FROM unnest($3::text[], $4::int2[]))
            AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting s WHERE s.queue = j.queue AND s.paused)
        ORDER BY p.seq LIMIT 1 FOR UPDATE OF p SKIP LOCKED
    ) head
), oldest AS MATERIALIZED (
    SELECT * FROM heads ORDER BY seq LIMIT 1
)
DELETE FROM holdfast.parked p USING oldest o WHERE p.job_id = ANY (ARRAY[o.job_id])
RETURNING p.job_id, o.queue, o.priority, p.attempt, p.losses, p.crashes, p.attached, p.tag, p.seq, p.queue AS counted

-- name: lane_now
-- Of a job that is in our hand: whoever was moved before that stands elsewhere than it was seen.
SELECT queue, priority FROM holdfast.job WHERE id = $1

-- name: stub_bodies
-- A job whose body is gone ends visibly: the dead letter needs something to show.
INSERT INTO holdfast.job (id, task, queue, priority, payload, created_at)
SELECT id, 'missing', queue, priority, convert_to('{"args":[],"kwargs":{}}', 'UTF8'), $4
FROM unnest($1::uuid[], $2::text[], $3::int2[]) AS b (id, queue, priority)
