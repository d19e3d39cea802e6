-- What operators say about flow control, and who said it.

-- name: all
SELECT what, name, size, count, per_s, burst FROM holdfast.rule

-- name: limit
SELECT what, name, size, count, per_s, burst FROM holdfast.rule WHERE what = 'limit' AND name = $1 FOR UPDATE

-- name: set
INSERT INTO holdfast.rule (what, name, size, count, per_s, burst) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (what, name) DO UPDATE
    SET size = excluded.size, count = excluded.count, per_s = excluded.per_s, burst = excluded.burst

-- name: drop
DELETE FROM holdfast.rule WHERE what = $1 AND name = $2 RETURNING true

-- name: exists
SELECT true FROM holdfast.rule WHERE what = $1 AND name = $2

-- name: alone
-- One change at a time, so that what it says of before and after is what was before and after. Not for ever, if somebody
-- has stopped in the middle of a claim: whoever claims meanwhile waits behind us. The server ends such a transaction of ours
-- before that, but does not know of ours through a pooler.
SELECT set_config('lock_timeout', '8s', true), pg_advisory_xact_lock(hashtextextended('holdfast.setting', 0))

-- name: by_myself
-- The same, and nobody goes the short way of limited jobs; functions are told so (`is_alone`).
SELECT set_config('lock_timeout', '8s', true), pg_advisory_xact_lock(hashtextextended('holdfast.setting', 0)),
       set_config('holdfast.alone', 'yes', true)

-- name: still
-- Nobody says anything else before we have committed, and nobody is alone.
SELECT pg_advisory_xact_lock_shared(hashtextextended('holdfast.setting', 0))

-- name: record
INSERT INTO holdfast.setting_change (at, by, what, name, before, after) VALUES ($1, $2, $3, $4, $5, $6)

-- name: changes
SELECT number, at, by, what, name, before, after FROM holdfast.setting_change
WHERE number < coalesce($2, 9223372036854775807) AND at BETWEEN '0100-01-01' AND '9890-01-01'
ORDER BY number DESC LIMIT $1

-- name: lock_breakers
-- By name, as everybody does; those that are new are made, and those that are there are not changed.
INSERT INTO holdfast.breaker AS b (name) SELECT name FROM unnest($1::text[]) AS n (name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET held = b.held WHERE false RETURNING b.name

-- name: breakers_of
-- A moment that nobody can have meant is none; so it is below.
-- What operators say of how they count comes with them.
SELECT b.name, b.recent, CASE WHEN b.open_until BETWEEN '0100-01-01' AND '9890-01-01' THEN b.open_until END, b.held,
       s.failures, s.window_s, s.open_for_s
FROM holdfast.breaker b LEFT JOIN holdfast.breaker_setting s ON s.name = b.name WHERE b.name = ANY ($1)

-- name: write_breakers
-- The times of failures come as text: an array of arrays of any length does not exist.
UPDATE holdfast.breaker b SET recent = string_to_array(n.recent, ' ')::float8[], open_until = n.open_until, held = n.held
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bool[]) AS n (name, recent, open_until, held)
WHERE b.name = n.name

-- name: drop_breakers
-- Made only to be held: nothing has failed.
DELETE FROM holdfast.breaker WHERE name = ANY ($1)

-- name: breakers
-- Those too of which operators have only said how they count.
SELECT name, b.recent, CASE WHEN b.open_until BETWEEN '0100-01-01' AND '9890-01-01' THEN b.open_until END, b.held,
       holdfast.clock(), (SELECT count(*) FROM (
    SELECT 1 FROM holdfast.parked p WHERE p.reason = 'breaker' AND p.key = name ORDER BY p.seq LIMIT $1) n),
       s.failures, s.window_s, s.open_for_s
FROM holdfast.breaker b FULL JOIN holdfast.breaker_setting s USING (name) ORDER BY name

-- name: figures
SELECT failures, window_s, open_for_s FROM holdfast.breaker_setting WHERE name = $1

-- name: put_figures
INSERT INTO holdfast.breaker_setting (name, failures, window_s, open_for_s) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
    SET failures = excluded.failures, window_s = excluded.window_s, open_for_s = excluded.open_for_s

-- name: drop_figures
DELETE FROM holdfast.breaker_setting WHERE name = $1
