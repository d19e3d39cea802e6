-- Where jobs go, as operators say it. What is of another type, or longer than any pattern or name, counts as not there.

-- name: all
SELECT CAST(pattern AS BLOB), CASE WHEN typeof(queue) = 'text' THEN CAST(substr(queue, 1, 65) AS BLOB) END,
       CASE WHEN typeof(priority) = 'integer' THEN priority END
FROM route WHERE typeof(pattern) = 'text' AND length(pattern) <= 200 ORDER BY pattern LIMIT ?

-- name: one
SELECT CASE WHEN typeof(queue) = 'text' THEN CAST(substr(queue, 1, 65) AS BLOB) END,
       CASE WHEN typeof(priority) = 'integer' THEN priority END
FROM route WHERE pattern = ?

-- name: count
SELECT count(*) FROM route

-- name: set
INSERT OR REPLACE INTO route (pattern, queue, priority) VALUES (?, ?, ?)

-- name: drop
DELETE FROM route WHERE pattern = ?
