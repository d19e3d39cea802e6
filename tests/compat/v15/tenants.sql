-- Tenants: the tags of their jobs, and what is set for them.

-- name: tenanted
SELECT queue FROM holdfast.depth WHERE tenanted

-- name: mark
-- Never inside a user's transaction: others would wait for it.
UPDATE holdfast.depth SET tenanted = true WHERE queue = ANY ($1) AND NOT tenanted

-- name: of_jobs
SELECT id, tenant FROM holdfast.job WHERE id = ANY ($1)

-- name: give_tags
SELECT first, cost FROM holdfast.give_tags($1::text[], $2::int2[], $3::text[], $4::int4[], $5::uuid[])
ORDER BY number

-- name: guess_tags
SELECT first, cost FROM holdfast.guess_tags($1::text[], $2::int2[], $3::text[], $4::int4[], $5::uuid[])
ORDER BY number

-- name: reach
-- Jobs with these tags were claimed other than by the function `claim_jobs`.
INSERT INTO holdfast.lane_reached AS x (tag, priority, stripe, queue)
SELECT max(r.tag), r.priority, ('x' || right($4::uuid::text, 1))::bit(4)::int4, r.queue
FROM unnest($1::text[], $2::int2[], $3::int8[]) AS r (queue, priority, tag)
GROUP BY r.queue, r.priority ORDER BY r.queue COLLATE "C", r.priority
ON CONFLICT (queue, priority, stripe) DO UPDATE SET tag = excluded.tag WHERE excluded.tag > x.tag

-- name: fold_notes
-- In the order in which tags are given: first those that are there, then those that are new.
WITH gone AS (
    DELETE FROM holdfast.tenant_note WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM holdfast.tenant_note LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING tag, job_id, priority, queue, tenant
), last AS (
    SELECT DISTINCT ON (queue, priority, tenant) tag, job_id, priority, queue, tenant FROM gone
    ORDER BY queue, priority, tenant, tag DESC
)
INSERT INTO holdfast.tenant_tag AS t (tag, job_id, priority, queue, tenant)
SELECT l.tag, l.job_id, l.priority, l.queue, l.tenant FROM last l
ORDER BY NOT EXISTS (SELECT 1 FROM holdfast.tenant_tag x WHERE x.queue = l.queue AND x.priority = l.priority
                         AND x.tenant = l.tenant), l.queue, l.priority, l.tenant
ON CONFLICT (queue, priority, tenant) DO UPDATE SET tag = excluded.tag, job_id = excluded.job_id
WHERE excluded.tag > t.tag

-- name: somewhere
-- A place in the table, by chance, so that each sweep does a bounded part of the work. Every other time it is the
-- beginning: else the first rows would hardly ever be seen.
SELECT '(' || floor(greatest(0, random() * 2 - 1) * pg_relation_size('holdfast.tenant_tag')
                    / current_setting('block_size')::int8)::int8 || ',0)'

-- name: forget
-- Tags that the lane has come by say nothing any more.
DELETE FROM holdfast.tenant_tag WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM holdfast.tenant_tag t
    WHERE t.ctid = ANY (ARRAY(SELECT ctid FROM holdfast.tenant_tag WHERE ctid >= $1::text::tid LIMIT $2))
        AND t.tag <= (SELECT max(r.tag) FROM holdfast.lane_reached r
                      WHERE r.queue = t.queue AND r.priority = t.priority)
    FOR UPDATE SKIP LOCKED))

-- name: weights
SELECT tenant, weight FROM holdfast.tenant_setting

-- name: weight
SELECT weight FROM holdfast.tenant_setting WHERE tenant = $1

-- name: set_weight
INSERT INTO holdfast.tenant_setting (tenant, weight) VALUES ($1, $2)
ON CONFLICT (tenant) DO UPDATE SET weight = excluded.weight

-- name: drop_weight
DELETE FROM holdfast.tenant_setting WHERE tenant = $1
