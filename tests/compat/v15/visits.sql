-- Enqueue inside a user's transaction, on the user's connection.

-- name: home
-- Which database this is, of which server: two connections agree on it exactly when they lead to the same one.
SELECT extract(epoch FROM pg_postmaster_start_time())::text, current_database()::text

-- name: arrive
-- In text: what a user's connection makes of times is the user's to say.
SELECT (extract(epoch FROM holdfast.clock()) * 1000000)::int8::text,
       extract(epoch FROM pg_postmaster_start_time())::text, current_database()::text
