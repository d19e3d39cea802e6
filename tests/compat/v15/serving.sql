-- Those who wait at gates: who is to be looked after, and what becomes of them. Where it is only asked whether anybody
-- waits, the oldest is asked for: there is one index for that, whatever the statistics say.

-- name: look_after
SELECT * FROM holdfast.look_after($1::text[], $2::text[], $3)

-- name: due
-- Gates that are due and in nobody's hand.
SELECT kind, key FROM holdfast.gate WHERE due_at <= (SELECT holdfast.clock())
    AND kind IN ('limit', 'rate', 'breaker', 'paused') ORDER BY due_at, kind, key LIMIT $1
FOR NO KEY UPDATE SKIP LOCKED

-- name: late
-- Gates that have been due for so long that whoever is to look after them does not.
SELECT kind, key FROM holdfast.gate WHERE due_at <= (SELECT holdfast.clock()) - make_interval(secs => $1)
ORDER BY due_at, kind, key LIMIT $2

-- name: overdue
-- The same, whoever has them in hand.
SELECT kind, key FROM holdfast.gate WHERE due_at <= (SELECT holdfast.clock())
    AND kind IN ('limit', 'rate', 'breaker', 'paused') ORDER BY due_at, kind, key LIMIT $1

-- name: next_due
SELECT extract(epoch FROM g.due_at - holdfast.clock())::float8 FROM holdfast.gate g
WHERE g.due_at BETWEEN '0100-01-01' AND '9890-01-01' AND (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key
    ORDER BY p.seq LIMIT 1) IS NOT NULL
ORDER BY g.due_at LIMIT 1

-- name: preview
-- Who is next in each lane at these gates, so that it is known what else has to be held.
WITH head AS MATERIALIZED (
    SELECT g.kind, g.key, l.queue, l.priority, p.tenant, p.line, p.job_id
    FROM unnest($1::text[], $2::text[]) AS g (kind, key)
    CROSS JOIN LATERAL holdfast.lanes_at(g.kind, g.key, $4) l
    CROSS JOIN LATERAL (
        SELECT x.tenant, x.line, x.job_id FROM holdfast.parked x
        WHERE x.reason = g.kind AND x.key = g.key AND x.queue = l.queue AND x.priority = l.priority
        ORDER BY x.line, x.seq LIMIT greatest(1, $3::int8 / l.many)) p
), whose AS (
    SELECT kind, key, queue, priority, tenant, count(*) AS many FROM head WHERE line > 0
    GROUP BY kind, key, queue, priority, tenant
)
SELECT j.task, j.queue, j.tenant, j.gates FROM (
    SELECT job_id FROM head
    UNION
    SELECT p.job_id FROM whose w CROSS JOIN LATERAL (
        SELECT x.job_id FROM holdfast.parked x
        WHERE x.reason = w.kind AND x.key = w.key AND x.queue = w.queue AND x.priority = w.priority AND x.line >= 1
            AND (x.tenant, x.seq) > (w.tenant, -1) AND (x.tenant, x.seq) < (w.tenant, 9223372036854775807)
        ORDER BY x.tenant, x.seq LIMIT w.many) p
) n JOIN holdfast.job j ON j.id = ANY (ARRAY[n.job_id])

-- name: line
-- The same, held here until we commit, where nobody else has them in hand: of each lane the `most` that are next by their
-- tags, and as many of each of their tenants by their places. Served: claimed from by somebody, or by nobody because there
-- is no worker at all. Without a task: the body is gone.
WITH head AS MATERIALIZED (
    SELECT p.*, greatest(1, $3::int8 / l.many) AS most, l.cut
    FROM holdfast.lanes_at($1, $2, $4) l
    CROSS JOIN LATERAL (
        SELECT x.* FROM holdfast.parked x
        WHERE x.reason = $1 AND x.key = $2 AND x.queue = l.queue AND x.priority = l.priority
        ORDER BY x.line, x.seq LIMIT greatest(1, $3::int8 / l.many) FOR UPDATE SKIP LOCKED) p
), whose AS (
    SELECT queue, priority, tenant, count(*) AS many FROM head WHERE line > 0 GROUP BY queue, priority, tenant
), first AS MATERIALIZED (
    SELECT p.*, NULL::int8 AS most, false AS cut FROM whose w CROSS JOIN LATERAL (
        SELECT x.* FROM holdfast.parked x
        WHERE x.reason = $1 AND x.key = $2 AND x.queue = w.queue AND x.priority = w.priority AND x.line >= 1
            AND (x.tenant, x.seq) > (w.tenant, -1) AND (x.tenant, x.seq) < (w.tenant, 9223372036854775807)
        ORDER BY x.tenant, x.seq LIMIT w.many FOR UPDATE SKIP LOCKED) p
    WHERE p.job_id NOT IN (SELECT job_id FROM head)
)
SELECT p.job_id, coalesce(j.queue, nullif(p.queue, ''), 'default') AS queue, coalesce(j.priority, 5) AS priority, p.attempt,
       p.losses, p.crashes, p.attached, p.tag, p.seq % 4611686018427387904 AS seq, j.task, j.tenant, j.gates,
       p.queue AS lane_queue, p.priority AS lane_priority, p.tenant AS lane_tenant,
       CASE WHEN p.line BETWEEN 0 AND (1::int8 << 60) - 1 THEN p.line ELSE 0 END AS line,
       p.most, p.cut, t.due, t.reached, s.weight, s.weights,
       NOT EXISTS (SELECT 1 FROM holdfast.queue_setting x WHERE x.queue = p.queue AND x.paused)
       AND (NOT EXISTS (SELECT 1 FROM holdfast.worker)
            OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}' OR p.queue = ANY (w.queues))) AS served
FROM (SELECT * FROM head UNION ALL SELECT * FROM first) p
LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[p.job_id])
LEFT JOIN holdfast.turn t ON t.kind = $1 AND t.key = $2 AND t.queue = ANY (ARRAY[p.queue]) AND t.priority = p.priority
LEFT JOIN holdfast.queue_setting s ON s.queue = p.queue

-- name: give_tags
UPDATE holdfast.parked p SET line = g.line FROM unnest($1::uuid[], $2::int8[]) AS g (job_id, line)
WHERE p.job_id = ANY (ARRAY[g.job_id])

-- name: hand_down_tags
-- Tags of those who went on without using one, to those of their tenants who brought the largest and are in nobody's hand:
-- else the others of a tenant would wait for as many turns of everybody else as have gone on.
WITH spare AS MATERIALIZED (
    SELECT g.*, row_number() OVER (PARTITION BY kind, key, queue, priority, tenant ORDER BY line) AS n
    FROM unnest($1::text[], $2::text[], $3::text[], $4::int2[], $5::text[], $6::int8[])
        AS g (kind, key, queue, priority, tenant, line)
), whose AS (
    SELECT kind, key, queue, priority, tenant, count(*) AS many FROM spare GROUP BY kind, key, queue, priority, tenant
), last AS MATERIALIZED (
    SELECT w.kind, w.key, w.queue, w.priority, w.tenant, p.job_id, p.line FROM whose w CROSS JOIN LATERAL (
        SELECT x.job_id, x.line FROM holdfast.parked x
        WHERE x.reason = w.kind AND x.key = w.key AND x.queue = w.queue AND x.priority = w.priority AND x.line > 0
            AND x.line < (1::int8 << 60) AND (x.tenant, x.line) > (w.tenant, 0)
            AND (x.tenant, x.line) < (w.tenant, 1::int8 << 60)
        ORDER BY x.tenant DESC, x.line DESC LIMIT w.many FOR UPDATE SKIP LOCKED) p
), taker AS (
    SELECT l.*, row_number() OVER (PARTITION BY kind, key, queue, priority, tenant ORDER BY line DESC) AS n FROM last l
)
UPDATE holdfast.parked p SET line = s.line
FROM taker t JOIN spare s USING (kind, key, queue, priority, tenant, n)
WHERE p.job_id = ANY (ARRAY[t.job_id]) AND t.line > s.line

-- name: overdue_lanes
-- Of which somebody was let go from this rate some time ago and is not claimed; of those who must run alone others need not
-- wait.
SELECT DISTINCT queue, priority FROM (
    SELECT r.queue, r.priority FROM holdfast.slot s JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[s.job_id])
    WHERE s.key = $1 AND s.kind = 'rate' AND (s.kept_at BETWEEN $2 AND $3) IS NOT TRUE AND r.losses < 2 LIMIT 1000) t

-- name: clock
SELECT due, reached FROM holdfast.turn WHERE kind = $1 AND key = $2 AND queue = '' AND priority = -1

-- name: keep_turns
INSERT INTO holdfast.turn (kind, key, queue, priority, due, reached)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int2[], $5::float8[], $6::int8[])
ON CONFLICT (kind, key, queue, priority) DO UPDATE SET due = excluded.due, reached = excluded.reached

-- name: forget_turns
DELETE FROM holdfast.turn t USING unnest($1::text[], $2::text[], $3::text[], $4::int2[]) AS d (kind, key, queue, priority)
WHERE t.kind = d.kind AND t.key = d.key AND t.queue = d.queue AND t.priority = d.priority

-- name: forget_empty_lanes
-- From a place in the table, by chance, as gates are forgotten: lanes of which nobody waits any more, and clocks of gates.
DELETE FROM holdfast.turn WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM (
        SELECT ctid, kind, key, queue, priority FROM holdfast.turn WHERE ctid >= (
            SELECT ('(' || floor(greatest(0, random() * 2 - 1) * pg_relation_size('holdfast.turn')
                / current_setting('block_size')::int8)::int8 || ',0)')::tid)
        LIMIT $1 FOR UPDATE SKIP LOCKED) t
    WHERE CASE WHEN t.queue = '' THEN (SELECT p.seq FROM holdfast.parked p
            WHERE p.reason = t.kind AND p.key = t.key ORDER BY p.seq LIMIT 1) IS NULL
        ELSE NOT EXISTS (SELECT 1 FROM holdfast.parked p WHERE p.reason = t.kind AND p.key = t.key AND p.queue = t.queue
            AND p.priority = t.priority) END))

-- name: unpark
DELETE FROM holdfast.parked WHERE job_id = ANY ($1)

-- name: astray
-- Who stands behind the others at these gates: programs of earlier versions put him there because his lane comes last.
-- A bounded number of each gate is looked at.
SELECT b.job_id FROM unnest($2::text[]) AS g (key) CROSS JOIN LATERAL (
    SELECT p.job_id FROM holdfast.parked p
    WHERE p.reason = $1 AND p.key = g.key AND p.seq >= 4611686018427387904 ORDER BY p.seq LIMIT $3) b

-- name: step_back
-- His place again, but for those that somebody has in hand.
UPDATE holdfast.parked SET seq = seq - 4611686018427387904 WHERE job_id = ANY (ARRAY(
    SELECT job_id FROM holdfast.parked WHERE job_id = ANY ($1) AND seq >= 4611686018427387904 FOR UPDATE SKIP LOCKED))

-- name: give_slots
SELECT holdfast.give_slots($1::uuid[], $2::text[], $3::text[], $4::int4[])

-- name: note_turns
-- When those were given that are kept at rates.
UPDATE holdfast.slot s SET kept_at = $2 WHERE s.ctid = ANY (ARRAY(
    SELECT x.ctid FROM holdfast.slot x WHERE x.job_id = ANY ($1) AND x.kind = 'rate'))

-- name: move
UPDATE holdfast.parked p SET reason = m.reason, key = m.key, seq = p.seq % 4611686018427387904
FROM unnest($1::uuid[], $2::text[], $3::text[]) AS m (job_id, reason, key) WHERE p.job_id = ANY (ARRAY[m.job_id])

-- name: fill
UPDATE holdfast.gate g SET full_at = f.full_at FROM unnest($1::text[], $2::timestamptz[]) AS f (key, full_at)
WHERE g.kind = 'rate' AND g.key = ANY (ARRAY[f.key]) AND g.full_at > f.full_at

-- name: look_again
-- `over`: of all that we saw nobody is left. Whoever is there all the same was in somebody's hand: a moment later he is
-- not, or gone. `again`: not all were looked at, and what was freed is still for them.
UPDATE holdfast.gate g SET freed = g.freed AND d.again, due_at = CASE WHEN d.over AND (
        SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key ORDER BY p.seq LIMIT 1) IS NOT NULL
    THEN holdfast.clock() + interval '0.1 second' ELSE d.due_at END
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bool[], $5::bool[]) AS d (kind, key, due_at, over, again)
WHERE g.kind = d.kind AND g.key = ANY (ARRAY[d.key])

-- name: due_by
UPDATE holdfast.gate g SET due_at = least(g.due_at, d.due_at) FROM unnest($1::text[], $2::text[], $3::timestamptz[])
    AS d (kind, key, due_at) WHERE g.kind = d.kind AND g.key = ANY (ARRAY[d.key])

-- name: all_due
-- Gates that somebody waits at, and that nobody has in hand, a bounded number at a time.
UPDATE holdfast.gate SET due_at = holdfast.clock() WHERE ctid = ANY (ARRAY(
    SELECT g.ctid FROM holdfast.gate g WHERE (g.due_at IS NULL OR g.due_at > holdfast.clock())
        AND (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key
            ORDER BY p.seq LIMIT 1) IS NOT NULL
    LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED))
RETURNING true

-- name: not_due
SELECT g.kind, g.key FROM holdfast.gate g WHERE (g.due_at IS NULL OR g.due_at > holdfast.clock())
    AND (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key
        ORDER BY p.seq LIMIT 1) IS NOT NULL LIMIT $1

-- name: make_gates
-- A gate that somebody waits at has a row, also where an earlier version has parked him.
INSERT INTO holdfast.gate (kind, key) SELECT * FROM unnest($1::text[], $2::text[]) AS g (kind, key) ORDER BY kind, key
ON CONFLICT DO NOTHING

-- name: exist
-- Those of these gates that there are: where nobody waits there is mostly none.
SELECT x.kind, x.key FROM unnest($1::text[], $2::text[]) AS g (kind, key)
JOIN holdfast.gate x ON x.kind = g.kind AND x.key = ANY (ARRAY[g.key])

-- name: try_hold
SELECT true FROM holdfast.gate WHERE kind = $1 AND key = $2 FOR NO KEY UPDATE SKIP LOCKED

-- name: drop_kept_in_vain
-- A slot belongs to a job that runs, or that was given it and is about to: somebody claims from its queue, and it is not
-- among those that are named, of lanes that come last.
DELETE FROM holdfast.slot s WHERE s.key = $2 AND s.kind = $1
    AND NOT EXISTS (SELECT 1 FROM holdfast.active a WHERE a.job_id = s.job_id)
    AND NOT EXISTS (
        SELECT 1 FROM holdfast.ready r WHERE r.job_id = s.job_id
            AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting q WHERE q.queue = r.queue AND q.paused)
            AND r.job_id <> ALL ($3::uuid[])
            AND (NOT EXISTS (SELECT 1 FROM holdfast.worker)
                 OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}' OR r.queue = ANY (w.queues))))
RETURNING true

-- name: kept_in_vain
-- Gates of which somebody has a slot for nothing.
SELECT DISTINCT kind, key FROM (
    SELECT s.kind, s.key FROM holdfast.slot s
    WHERE NOT EXISTS (SELECT 1 FROM holdfast.active a WHERE a.job_id = s.job_id)
        AND NOT EXISTS (
            SELECT 1 FROM holdfast.ready r WHERE r.job_id = s.job_id
                AND NOT EXISTS (SELECT 1 FROM holdfast.queue_setting q WHERE q.queue = r.queue AND q.paused)
                AND (NOT EXISTS (SELECT 1 FROM holdfast.worker)
                     OR EXISTS (SELECT 1 FROM holdfast.worker w WHERE w.queues = '{}' OR r.queue = ANY (w.queues))))
    LIMIT $1) s

-- name: kept_by_last
-- Slots that were given to jobs that wait in these lanes.
SELECT s.kind, s.key, s.job_id, j.gates FROM holdfast.slot s
JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[s.job_id]) JOIN holdfast.job j ON j.id = ANY (ARRAY[s.job_id])
WHERE (r.queue, r.priority) IN (SELECT * FROM unnest($1::text[], $2::int2[]))

-- name: kept_for
-- Gates of which jobs that wait in this queue were given slots.
SELECT DISTINCT s.kind, s.key FROM holdfast.slot s JOIN holdfast.ready r ON r.job_id = ANY (ARRAY[s.job_id])
WHERE r.queue = $1

-- name: waited_at
-- A page of the gates that somebody waits at, and who waits longest; one after the other, by the index.
WITH RECURSIVE waited AS (
    (SELECT reason, key, 1 AS n FROM holdfast.parked WHERE reason = $1 AND key > $2 ORDER BY key LIMIT 1)
    UNION ALL
    SELECT w.reason, x.key, w.n + 1 FROM waited w CROSS JOIN LATERAL (
        SELECT y.key FROM holdfast.parked y WHERE y.reason = w.reason AND y.key > w.key ORDER BY y.key LIMIT 1) x
    WHERE w.n < $3
)
SELECT w.key, j.task, j.queue, j.tenant, j.gates, CASE WHEN g.due_at BETWEEN '0100-01-01' AND '9890-01-01' THEN g.due_at END AS due_at
FROM waited w CROSS JOIN LATERAL (
    SELECT p.job_id FROM holdfast.parked p WHERE p.reason = w.reason AND p.key = w.key ORDER BY p.seq LIMIT 1) oldest
LEFT JOIN holdfast.job j ON j.id = ANY (ARRAY[oldest.job_id])
LEFT JOIN holdfast.gate g ON g.kind = w.reason AND g.key = ANY (ARRAY[w.key])

-- name: usage
-- What is taken of gates, without holding them.
SELECT g.kind, g.key, (SELECT count(*) FROM holdfast.slot s WHERE s.key = g.key AND s.kind = g.kind),
       CASE WHEN x.full_at BETWEEN '0100-01-01' AND '9890-01-01' THEN x.full_at END, b.recent,
       CASE WHEN b.open_until BETWEEN '0100-01-01' AND '9890-01-01' THEN b.open_until END, b.held, (SELECT count(*) FROM (
           SELECT 1 FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key ORDER BY p.seq LIMIT $3) n)
FROM unnest($1::text[], $2::text[]) AS g (kind, key)
LEFT JOIN holdfast.gate x ON x.kind = g.kind AND x.key = ANY (ARRAY[g.key])
LEFT JOIN holdfast.breaker b ON g.kind = 'breaker' AND b.name = g.key

-- name: in_use
-- Some gates that somebody has a slot of, waits at, or has spent tokens of. Slots of one key stand beside each other.
SELECT kind, key FROM (
    (SELECT DISTINCT s.key, s.kind FROM holdfast.slot s ORDER BY s.key, s.kind LIMIT $1)
    UNION
    (SELECT g.key, g.kind FROM holdfast.gate g
     WHERE g.full_at > holdfast.clock()
         OR (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key
             ORDER BY p.seq LIMIT 1) IS NOT NULL
     ORDER BY g.key, g.kind LIMIT $1)
) used ORDER BY key, kind LIMIT $1

-- name: somewhere
-- A place in the table, by chance, so that each sweep does a bounded part of the work; every other time the beginning.
SELECT '(' || floor(greatest(0, random() * 2 - 1) * pg_relation_size('holdfast.gate')
                    / current_setting('block_size')::int8)::int8 || ',0)'

-- name: hold_some
SELECT ctid::text FROM holdfast.gate WHERE ctid = ANY (ARRAY(SELECT ctid FROM holdfast.gate WHERE ctid >= $1::text::tid LIMIT $2))
    AND (full_at IS NULL OR full_at <= holdfast.clock())
    AND NOT EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.key = gate.key AND s.kind = gate.kind)
FOR NO KEY UPDATE SKIP LOCKED

-- name: forget
-- Of those that are held: what nobody uses. A statement of its own, which sees what was committed before they were held.
DELETE FROM holdfast.gate g WHERE g.ctid = ANY ($1::text[]::tid[]) AND (g.full_at IS NULL OR g.full_at <= holdfast.clock())
    AND NOT EXISTS (SELECT 1 FROM holdfast.slot s WHERE s.key = g.key AND s.kind = g.kind)
    AND (SELECT p.seq FROM holdfast.parked p WHERE p.reason = g.kind AND p.key = g.key ORDER BY p.seq LIMIT 1) IS NULL
