-- Jobs that wait, given another queue or priority; and where a job stands.

-- name: lanes
SELECT id, queue, priority, tenant <> '' AS named FROM holdfast.job WHERE id = ANY ($1)

-- name: ready
-- Those of them that are ready and in nobody's hand, held here.
SELECT job_id, losses FROM holdfast.ready WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED

-- name: numbers
SELECT nextval('holdfast.place') FROM generate_series(1, $1)

-- name: to_the_tail
UPDATE holdfast.ready r SET queue = m.queue, priority = m.priority, tag = m.tag, seq = m.seq, entered_at = $6
FROM unnest($1::uuid[], $2::text[], $3::int2[], $4::int8[], $5::int8[]) AS m (job_id, queue, priority, tag, seq)
WHERE r.job_id = ANY (ARRAY[m.job_id])

-- name: shift
-- Those that wait for something else stay there.
WITH t AS (UPDATE holdfast.timer SET queue = coalesce($2, queue) WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.timer WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED)) RETURNING job_id),
     b AS (UPDATE holdfast.blocked SET queue = coalesce($2, queue) WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM holdfast.blocked WHERE job_id = ANY ($1) FOR UPDATE SKIP LOCKED)) RETURNING job_id)
SELECT job_id FROM t UNION ALL SELECT job_id FROM b

-- name: parked
SELECT job_id, queue, reason, key, priority, tenant, line FROM holdfast.parked WHERE job_id = ANY ($1)
FOR UPDATE SKIP LOCKED

-- name: move_parked
UPDATE holdfast.parked p SET queue = m.queue, priority = m.priority, tag = m.tag, seq = p.seq % 4611686018427387904
FROM unnest($1::uuid[], $2::text[], $3::int2[], $4::int8[]) AS m (job_id, queue, priority, tag)
WHERE p.job_id = ANY (ARRAY[m.job_id])

-- name: bodies
UPDATE holdfast.job SET queue = coalesce($2, queue), priority = coalesce($3, priority) WHERE id = ANY ($1)

-- name: circumstances
SELECT j.gates, j.queue, j.priority, coalesce(r.losses, t.losses, p.losses, a.losses, 0), p.reason, p.key,
       b.job_id IS NOT NULL
FROM holdfast.job j
LEFT JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.timer t ON t.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.parked p ON p.job_id = ANY (ARRAY[j.id]) LEFT JOIN holdfast.active a ON a.job_id = ANY (ARRAY[j.id])
LEFT JOIN holdfast.blocked b ON b.job_id = ANY (ARRAY[j.id])
WHERE j.id = $1

-- name: waits_for
-- Of a job that is blocked.
SELECT m.job_id FROM holdfast.member m JOIN holdfast.job j ON j.id = ANY (ARRAY[m.job_id]) WHERE m.join_id = $1
    AND NOT EXISTS (SELECT 1 FROM holdfast.arrival a WHERE a.join_id = m.join_id AND a.job_id = m.job_id)
    AND NOT EXISTS (SELECT 1 FROM holdfast.done d WHERE d.job_id = m.job_id)
    AND NOT EXISTS (SELECT 1 FROM holdfast.dead d WHERE d.job_id = m.job_id)
ORDER BY m.job_id LIMIT $2

-- name: holds
SELECT kind, key FROM holdfast.slot WHERE job_id = $1

-- name: line
-- Of those who wait at the same place: who comes first in its lane, and who is of others, which take turns with it. Of a
-- tenant, the jobs go by their places, each by the next of their tags. One after the other, by the index.
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM holdfast.parked x WHERE x.reason = p.reason AND x.key = p.key AND x.queue = p.queue
                AND x.priority = p.priority AND (x.line, x.seq) < (coalesce(t.line, 0), coalesce(t.seq, p.seq))
            ORDER BY x.line, x.seq LIMIT $2) n),
       (SELECT count(*) FROM (
            SELECT 1 FROM holdfast.parked x WHERE x.reason = p.reason AND x.key = p.key
                AND (x.queue, x.priority) < (p.queue, p.priority) ORDER BY x.queue, x.priority LIMIT $2) n)
       + (SELECT count(*) FROM (
            SELECT 1 FROM holdfast.parked x WHERE x.reason = p.reason AND x.key = p.key
                AND (x.queue, x.priority) > (p.queue, p.priority) ORDER BY x.queue, x.priority LIMIT $2) n)
FROM holdfast.parked p LEFT JOIN LATERAL (
    SELECT o.line, o.seq FROM holdfast.parked o WHERE o.reason = p.reason AND o.key = p.key AND o.queue = p.queue
        AND o.priority = p.priority AND o.tenant = p.tenant AND o.line > 0 AND o.line < (1::int8 << 60)
    ORDER BY o.line LIMIT 1
    OFFSET (SELECT count(*) FROM (
        SELECT 1 FROM holdfast.parked e WHERE e.reason = p.reason AND e.key = p.key AND e.queue = p.queue
            AND e.priority = p.priority AND e.tenant = p.tenant AND e.line >= 1 AND e.seq < p.seq
        ORDER BY e.seq LIMIT $2) n)) t ON p.line > 0
WHERE p.job_id = $1

-- name: lately
-- From the newest rows of each kind, found by an index: bounded work, however many there are. Where there are more than
-- that, they are counted from the oldest one on. Dead letters are few, and in the order of their ids. Who was cancelled
-- is not counted: most of those have never run.
WITH succeeded AS MATERIALIZED (
    SELECT job_id, ended_at AS at FROM holdfast.done WHERE cancelled = false AND ended_at > $1
    ORDER BY ended_at DESC LIMIT $3
), dead AS MATERIALIZED (
    SELECT job_id, started_at, ended_at AS at FROM holdfast.dead ORDER BY job_id DESC LIMIT $3
), since AS MATERIALIZED (
    SELECT coalesce((SELECT CASE WHEN count(*) = $3 THEN min(at) END FROM succeeded), $1) AS at
), ended AS MATERIALIZED (
    SELECT e.at, j.queue, j.priority, j.task, j.gates FROM (
        SELECT job_id, at FROM succeeded
        UNION ALL SELECT job_id, at FROM dead WHERE started_at IS NOT NULL) e
    JOIN holdfast.job j ON j.id = ANY (ARRAY[e.job_id]) WHERE e.at >= (SELECT at FROM since)
)
SELECT (SELECT count(*) FROM ended WHERE queue = $4 AND priority = $5),
       (SELECT count(*) FROM ended WHERE strpos(gates, $7) > 0 OR 'task:' || task = $6 OR 'queue:' || queue = $6),
       (SELECT count(*) FROM ended WHERE at > $2)
       + (SELECT count(*) FROM holdfast.active WHERE started_at > $2),
       (SELECT at FROM since)

-- name: position
SELECT (SELECT count(*) FROM (
            SELECT 1 FROM holdfast.ready x WHERE x.queue = r.queue AND x.priority = r.priority
                AND (x.tag, x.seq) < (r.tag, r.seq) ORDER BY x.tag, x.seq LIMIT $2) n), r.entered_at
FROM holdfast.ready r WHERE r.job_id = $1
