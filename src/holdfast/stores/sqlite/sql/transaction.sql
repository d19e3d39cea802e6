-- What every verb shares: numbers that only grow, the way into `ready`, and the depth kept beside it.

-- name: take_numbers
UPDATE counter SET value = value + ? WHERE name = ? RETURNING value

-- name: enter_ready
INSERT INTO ready (queue, priority, tag, seq, job_id, attempt, losses, crashes, entered_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: change_depth
INSERT INTO depth (queue, ready) VALUES (?, ?)
ON CONFLICT (queue) DO UPDATE SET ready = ready + excluded.ready
RETURNING ready, closed

-- name: depth
SELECT ready, closed, tenanted FROM depth WHERE queue = ?

-- name: watermarks
SELECT high, low FROM queue_setting WHERE queue = ? AND high IS NOT NULL

-- name: set_gate
INSERT INTO depth (queue, ready, closed) VALUES (:queue, 0, :closed)
ON CONFLICT (queue) DO UPDATE SET closed = excluded.closed
