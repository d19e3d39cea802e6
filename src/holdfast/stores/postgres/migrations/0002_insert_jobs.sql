-- insert_jobs: ordinary jobs, ready at once, in one statement; ids that are there already are left alone. Answers
-- with the ids that are new, or with one NULL where all of them are, as they mostly are. Also a repeated call that finds all its ids writes a row (of no change), so that its
-- commit waits for a synchronous standby as the first one should have.
CREATE FUNCTION holdfast.insert_jobs(
    _ids uuid[], _tasks text[], _queues text[], _priorities int2[], _payloads bytea[], _tenants text[],
    _options bytea[], _max_attempts int4[], _tags text[], _metadata bytea[], _headers bytea[]
) RETURNS SETOF uuid LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    RETURN QUERY
    WITH moment AS MATERIALIZED (
        SELECT holdfast.clock() AS now
    ), body AS (
        INSERT INTO holdfast.job (id, created_at, priority, max_attempts, task, queue, tenant, payload, options, tags,
                                  metadata, headers)
        SELECT j.id, moment.now, j.priority, j.max_attempts, j.task, j.queue, j.tenant, j.payload, j.options,
               CASE WHEN j.tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(j.tags::jsonb)) END,
               j.metadata, j.headers
        FROM moment, unnest(_ids, _tasks, _queues, _priorities, _payloads, _tenants, _options, _max_attempts, _tags,
                    _metadata, _headers)
            AS j (id, task, queue, priority, payload, tenant, options, max_attempts, tags, metadata, headers)
        ON CONFLICT DO NOTHING
        RETURNING id, queue, priority, created_at
    ), placed AS (
        INSERT INTO holdfast.ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
        SELECT nextval('holdfast.place'), created_at, id, priority, 0, 0, 0, false, queue FROM body
        RETURNING job_id, queue
    ), counted AS (
        INSERT INTO holdfast.depth_change (queue, change)
        SELECT asked.queue, count(placed.queue) FROM (SELECT DISTINCT unnest(_queues) AS queue) asked
        LEFT JOIN placed USING (queue) GROUP BY asked.queue
    )
    SELECT NULL::uuid WHERE (SELECT count(*) FROM placed) = cardinality(_ids)
    UNION ALL
    SELECT job_id FROM placed WHERE (SELECT count(*) FROM placed) < cardinality(_ids);
END $$;

-- take_keys: idempotency keys for new jobs, in the order given, which is the same for everybody; answers with those
-- taken. Waits, but not for long, for whoever is inserting the same key just now: that may be a user's transaction
-- that stays open. The bound belongs to this function, so that it holds inside a user's transaction and changes none of
-- its settings.
CREATE FUNCTION holdfast.take_keys(
    _tenants text[], _keys text[], _fingerprints bytea[], _job_ids uuid[], _windows_s float8[], _now timestamptz
) RETURNS TABLE (tenant text, key text) LANGUAGE plpgsql
SET lock_timeout = '500ms'
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    INSERT INTO holdfast.idempotency_key AS k (tenant, key, fingerprint, job_id, expires_at)
    SELECT t.tenant, t.key, t.fingerprint, t.job_id, _now + t.window_s * interval '1 second'
    FROM unnest(_tenants, _keys, _fingerprints, _job_ids, _windows_s)
        AS t (tenant, key, fingerprint, job_id, window_s)
    ON CONFLICT (tenant, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, job_id = excluded.job_id, expires_at = excluded.expires_at
        WHERE k.expires_at <= _now
    RETURNING k.tenant, k.key;
END $$;
