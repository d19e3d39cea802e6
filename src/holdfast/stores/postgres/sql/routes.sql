-- Where jobs go, as operators say it. What is longer than any pattern or name counts as not there.

-- name: all
SELECT pattern, left(queue, 65), priority FROM holdfast.route WHERE length(pattern) <= 200 ORDER BY pattern LIMIT $1

-- name: one
SELECT left(queue, 65), priority FROM holdfast.route WHERE pattern = $1

-- name: count
SELECT count(*) FROM holdfast.route

-- name: set
INSERT INTO holdfast.route (pattern, queue, priority) VALUES ($1, $2, $3)
ON CONFLICT (pattern) DO UPDATE SET queue = excluded.queue, priority = excluded.priority

-- name: drop
DELETE FROM holdfast.route WHERE pattern = $1
