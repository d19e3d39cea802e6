-- What every verb shares: numbers that only grow, the way into `ready`, and the depth kept beside it.

-- name: take_numbers
UPDATE counter SET value = value + ? WHERE name = ? RETURNING value

-- name: enter_ready
INSERT INTO ready (queue, priority, tag, seq, job_id, attempt, losses, crashes, entered_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: change_depth
INSERT INTO depth (queue, ready, parked) VALUES (?, ?, ?)
ON CONFLICT (queue) DO UPDATE SET ready = ready + excluded.ready, parked = parked + excluded.parked
RETURNING ready + parked, closed

-- name: depth
SELECT ready + parked, closed, tenanted FROM depth WHERE queue = ?

-- name: parked
SELECT CAST(parked AS INTEGER) FROM depth WHERE queue = ?

-- name: watermarks
SELECT high, low, high_age_s, low_age_s, draining FROM queue_setting WHERE queue = ?

-- name: oldest
-- Of the heads of all lanes (in a lane with tags that need not be the oldest of the lane), and of the first hundred that
-- wait at gates.
WITH RECURSIVE lane (priority) AS (SELECT 0 UNION ALL SELECT priority + 1 FROM lane WHERE priority < 9)
SELECT min(since) FROM (
    SELECT (SELECT r.entered_at FROM ready r WHERE r.queue = ?1 AND r.priority = lane.priority
            ORDER BY r.tag, r.seq LIMIT 1) AS since FROM lane
    UNION ALL
    SELECT parked_at FROM (SELECT parked_at FROM parked WHERE queue = ?1 ORDER BY job_id LIMIT 100)
)

-- name: set_gate
INSERT INTO depth (queue, ready, closed) VALUES (:queue, 0, :closed)
ON CONFLICT (queue) DO UPDATE SET closed = excluded.closed
