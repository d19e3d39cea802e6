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
WITH RECURSIVE call AS (
    (SELECT task FROM holdfast.job WHERE queue = $1 ORDER BY task LIMIT 1)
    UNION ALL
    SELECT n.task FROM call c CROSS JOIN LATERAL (
        SELECT j.task FROM holdfast.job j WHERE j.queue = $1 AND j.task > c.task ORDER BY j.task LIMIT 1) n
)
SELECT $1, task FROM call LIMIT $2

-- name: queues_of_task
WITH RECURSIVE call AS (
    (SELECT queue FROM holdfast.job ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT n.queue FROM call c CROSS JOIN LATERAL (
        SELECT j.queue FROM holdfast.job j WHERE j.queue > c.queue ORDER BY j.queue LIMIT 1) n
)
SELECT queue, $1 FROM call LIMIT $2

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
