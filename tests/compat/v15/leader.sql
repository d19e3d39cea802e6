-- lead, resign, leading: one holder per role. A row stays when its lease has run out, so that terms never repeat.

-- name: lead
-- Whether the other's lease has run out is asked when its row is locked; the new lease counts from before that.
INSERT INTO holdfast.leader AS l (role, holder, term, lease_until)
VALUES ($1, $2, 1, holdfast.clock() + $3::float8 * interval '1 second')
ON CONFLICT (role) DO UPDATE SET holder = excluded.holder, term = l.term + (l.holder <> excluded.holder)::int,
    lease_until = excluded.lease_until
WHERE l.holder = excluded.holder OR l.lease_until <= holdfast.clock()
RETURNING l.term

-- name: resign
UPDATE holdfast.leader SET lease_until = holdfast.clock()
WHERE role = $1 AND holder = $2 AND lease_until > holdfast.clock()

-- name: leading
SELECT term FROM holdfast.leader WHERE role = $1 AND lease_until > holdfast.clock()
