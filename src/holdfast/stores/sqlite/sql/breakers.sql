-- Circuit breakers: rows of those that have failed, or that an operator has touched.

-- name: state
SELECT recent, open_until, held FROM breaker WHERE name = ?

-- name: set
INSERT OR REPLACE INTO breaker (name, recent, open_until, held) VALUES (?, ?, ?, ?)

-- name: figures
SELECT failures, window_s, open_for_s FROM breaker_setting WHERE name = ?

-- name: set_figures
INSERT OR REPLACE INTO breaker_setting (name, failures, window_s, open_for_s) VALUES (?, ?, ?, ?)

-- name: drop_figures
DELETE FROM breaker_setting WHERE name = ?

-- name: list
-- Those too of which operators have only said how they count.
SELECT n.name, b.recent, b.open_until, b.held,
       (SELECT count(*) FROM (SELECT 1 FROM parked p WHERE p.reason = 'breaker' AND p.key = n.name LIMIT ?)),
       s.failures, s.window_s, s.open_for_s
FROM (SELECT name FROM breaker UNION SELECT name FROM breaker_setting) n
LEFT JOIN breaker b ON b.name = n.name LEFT JOIN breaker_setting s ON s.name = n.name
ORDER BY n.name
