-- lead, resign, leading: one holder per role. A row stays when its lease has run out, so that terms never repeat.

-- name: lead
INSERT INTO leader AS l (role, holder, term, lease_until) VALUES (:role, :holder, 1, :now + :lease_s)
ON CONFLICT (role) DO UPDATE SET
    holder = excluded.holder, term = l.term + (l.holder != excluded.holder), lease_until = excluded.lease_until
WHERE l.holder = excluded.holder OR l.lease_until <= :now
RETURNING term

-- name: resign
UPDATE leader SET lease_until = :now WHERE role = :role AND holder = :holder AND lease_until > :now

-- name: leading
SELECT term FROM leader WHERE role = :role AND lease_until > :now
