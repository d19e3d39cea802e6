-- list_jobs: candidates, newest first, by an index; then the conditions that the index does not hold, on each of them.
-- {table} and {condition} are put in from the fixed names in `listing`, values are bound in place of `?`.

-- name: pin
-- For this transaction: every source is an index in its own order, and what is looked up is looked up by key.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true)

-- name: source
SELECT s.{id} FROM holdfast.{table} s WHERE s.{id} < $1 AND s.{id} >= $2 AND {condition} ORDER BY s.{id} DESC LIMIT $3

-- name: tasks_of_queue
-- As hashes, from the index alone, one look for each.
WITH RECURSIVE call AS (
    (SELECT hashtext(task) AS task FROM holdfast.job WHERE hashtext(queue) = hashtext($1) ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT n.task FROM call c CROSS JOIN LATERAL (
        SELECT hashtext(j.task) AS task FROM holdfast.job j
        WHERE hashtext(j.queue) = hashtext($1) AND hashtext(j.task) > c.task ORDER BY 1 LIMIT 1) n
)
SELECT hashtext($1), task FROM call LIMIT $2

-- name: queues_of_task
WITH RECURSIVE call AS (
    (SELECT hashtext(queue) AS queue FROM holdfast.job ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT n.queue FROM call c CROSS JOIN LATERAL (
        SELECT hashtext(j.queue) AS queue FROM holdfast.job j WHERE hashtext(j.queue) > c.queue ORDER BY 1 LIMIT 1) n
)
SELECT queue, hashtext($1) FROM call LIMIT $2

-- name: call
SELECT hashtext($1), hashtext($2)

-- name: with_words
-- In no order: of use only where there are few. The index alone decides, and stops at the limit.
SELECT s.job_id FROM holdfast.dead s WHERE s.words @> $1::text[] LIMIT $2

-- name: check
SELECT c.id FROM unnest($1::uuid[]) AS c (id) WHERE {condition}

-- name: has
EXISTS (SELECT 1 FROM holdfast.{table} s WHERE s.{id} = c.id AND {condition})

-- name: count
SELECT count(*) FROM (
    SELECT 1 FROM (SELECT {id} AS id FROM holdfast.{table}) c
    WHERE c.id < $1 AND c.id >= $2 AND {condition} LIMIT $3) n
