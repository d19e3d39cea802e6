-- Tenants: the tags of their jobs, and what is set for them.

-- name: tenanted
SELECT queue FROM depth WHERE tenanted

-- name: mark_tenanted
INSERT INTO depth (queue, ready, tenanted) VALUES (?, 0, 1) ON CONFLICT (queue) DO UPDATE SET tenanted = 1

-- name: tenant_of
SELECT tenant FROM job WHERE id = ?

-- name: reached
SELECT tag FROM lane_reached WHERE queue = ? AND priority = ?

-- name: reach
INSERT INTO lane_reached (queue, priority, tag) VALUES (?, ?, ?)
ON CONFLICT (queue, priority) DO UPDATE SET tag = max(tag, excluded.tag)

-- name: last_tag
-- Whether the job that got it still waits with it is told, too.
SELECT t.tag, r.tag IS NOT NULL FROM tenant_tag t
LEFT JOIN ready r ON r.job_id = t.job_id AND r.tag = t.tag AND r.queue = t.queue AND r.priority = t.priority
WHERE t.queue = ? AND t.priority = ? AND t.tenant = ?

-- name: last_waiting
-- The last job of a tenant that waits before a tag, as far as it is among the thousand before it.
SELECT max(s.tag) FROM (
    SELECT tag, job_id FROM ready WHERE queue = ? AND priority = ? AND tag < ? AND tag > ?
    ORDER BY tag DESC, seq DESC LIMIT 1000) s
JOIN job j ON j.id = s.job_id WHERE j.tenant = ?

-- name: set_last_tag
INSERT OR REPLACE INTO tenant_tag (queue, priority, tenant, tag, job_id) VALUES (?, ?, ?, ?, ?)

-- name: some_tags
-- From a place in the order of the key on, so that every sweep does a bounded part of the work.
SELECT t.queue, t.priority, t.tenant, t.tag <= coalesce(r.tag, 0)
FROM tenant_tag t LEFT JOIN lane_reached r ON r.queue = t.queue AND r.priority = t.priority
WHERE (t.queue, t.priority, t.tenant) > (?, ?, ?) ORDER BY t.queue, t.priority, t.tenant LIMIT ?

-- name: forget
DELETE FROM tenant_tag WHERE queue = ? AND priority = ? AND tenant = ?

-- name: weight
SELECT weight FROM tenant_setting WHERE tenant = ?

-- name: weights
SELECT tenant, weight FROM tenant_setting

-- name: set_weight
INSERT OR REPLACE INTO tenant_setting (tenant, weight) VALUES (?, ?)

-- name: drop_weight
DELETE FROM tenant_setting WHERE tenant = ?
