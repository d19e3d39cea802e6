-- Enqueue inside a user's transaction, on the user's connection.

-- name: home
-- Which database this is, of which server: two connections agree on it exactly when they lead to the same one.
SELECT pg_postmaster_start_time(), current_database()::text

-- name: arrive
SELECT holdfast.clock(), pg_postmaster_start_time(), current_database()::text
