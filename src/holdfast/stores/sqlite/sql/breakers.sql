-- Circuit breakers: rows of those that have failed, or that an operator has touched. What may be text that nobody can read
-- is asked for as bytes, and not at all where it has to be a number.

-- name: state
SELECT CAST(recent AS BLOB), CASE typeof(open_until) WHEN 'text' THEN NULL ELSE open_until END,
       CASE typeof(held) WHEN 'text' THEN NULL ELSE held END
FROM breaker WHERE name = ?

-- name: set
INSERT OR REPLACE INTO breaker (name, recent, open_until, held) VALUES (?, ?, ?, ?)

-- name: figures
SELECT CASE typeof(failures) WHEN 'text' THEN NULL ELSE failures END, CASE typeof(window_s) WHEN 'text' THEN NULL ELSE window_s END,
       CASE typeof(open_for_s) WHEN 'text' THEN NULL ELSE open_for_s END
FROM breaker_setting WHERE name = ?

-- name: set_figures
INSERT OR REPLACE INTO breaker_setting (name, failures, window_s, open_for_s) VALUES (?, ?, ?, ?)

-- name: drop_figures
DELETE FROM breaker_setting WHERE name = ?

-- name: list
-- Those too of which operators have only said how they count.
SELECT CAST(n.name AS BLOB), CAST(b.recent AS BLOB), CASE typeof(b.open_until) WHEN 'text' THEN NULL ELSE b.open_until END,
       CASE typeof(b.held) WHEN 'text' THEN NULL ELSE b.held END,
       (SELECT count(*) FROM (SELECT 1 FROM parked p WHERE p.reason = 'breaker' AND p.key = n.name LIMIT ?)),
       CASE typeof(s.failures) WHEN 'text' THEN NULL ELSE s.failures END,
       CASE typeof(s.window_s) WHEN 'text' THEN NULL ELSE s.window_s END,
       CASE typeof(s.open_for_s) WHEN 'text' THEN NULL ELSE s.open_for_s END
FROM (SELECT name FROM breaker UNION SELECT name FROM breaker_setting) n
LEFT JOIN breaker b ON b.name = n.name LEFT JOIN breaker_setting s ON s.name = n.name
WHERE typeof(n.name) = 'text' ORDER BY n.name
