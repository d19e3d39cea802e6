-- What operators say about flow control, and who said what.

-- name: rule
SELECT size, count, per_s, burst FROM rule WHERE what = ? AND name = ?

-- name: set
INSERT OR REPLACE INTO rule (what, name, size, count, per_s, burst) VALUES (?, ?, ?, ?, ?, ?)

-- name: drop
DELETE FROM rule WHERE what = ? AND name = ?

-- name: record
INSERT INTO setting_change (at, by, what, name, before, after) VALUES (?, ?, ?, ?, ?, ?)

-- name: changes
SELECT number, at, by, what, name, before, after FROM setting_change
WHERE number < coalesce(?, 9223372036854775807) ORDER BY number DESC LIMIT ?
