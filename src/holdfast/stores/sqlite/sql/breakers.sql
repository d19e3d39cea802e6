-- Circuit breakers: rows of those that have failed, or that an operator has touched.

-- name: state
SELECT recent, open_until, held FROM breaker WHERE name = ?

-- name: set
INSERT OR REPLACE INTO breaker (name, recent, open_until, held) VALUES (?, ?, ?, ?)

-- name: list
SELECT b.name, b.recent, b.open_until, b.held,
       (SELECT count(*) FROM (SELECT 1 FROM parked p WHERE p.reason = 'breaker' AND p.key = b.name LIMIT ?))
FROM breaker b ORDER BY b.name
