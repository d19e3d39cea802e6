-- The tables of a job's life. A job's state is the table it is in; a job is in exactly one of
-- ready, timer, active, blocked, parked, done, dead. Nothing here refers to anything by a foreign key: a row that
-- goes with its job is deleted by whoever deletes the job, and a check of a key would lock rows that others wait for.

-- The clock that alone decides leases, due times and deadlines. A function, so that tests can stop it; the planner
-- puts its body in place of every call.
CREATE FUNCTION holdfast.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Orders the ready jobs.
CREATE SEQUENCE holdfast.place;

-- Fences the runs: the timeline of the server in the high bits, so that tokens also grow over a fail-over in which
-- the last numbers of the sequence were lost.
CREATE SEQUENCE holdfast.run;
CREATE FUNCTION holdfast.timeline() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint << 40 $$;

-- The body, inserted once; only a dead job's payload may be edited.
CREATE TABLE holdfast.job (
    id            uuid NOT NULL,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz,
    priority      int2 NOT NULL CHECK (priority BETWEEN 0 AND 9),
    max_attempts  int4,
    limit_size    int4,
    task          text NOT NULL,
    queue         text NOT NULL,
    tenant        text NOT NULL DEFAULT '',
    payload       bytea NOT NULL,
    options       bytea,
    tags          text[],
    metadata      bytea,
    headers       bytea,
    limit_key     text,
    PRIMARY KEY (id)
);

-- For lists, newest first: the one index that every job pays for beside its key. A list by queue or by task alone
-- merges the few tasks of the queue, or the few queues of the task. By hashes, which are a third shorter in the log.
CREATE INDEX job_by_call ON holdfast.job (hashtext(queue), hashtext(task), id);
CREATE INDEX job_by_tenant ON holdfast.job (tenant, id) WHERE tenant <> '';

-- The jobs of a tag, in order, which an index of an array cannot give. Only jobs that have tags pay for it, however
-- they get in and out.
CREATE TABLE holdfast.tagged (
    job_id  uuid NOT NULL,
    tag     text NOT NULL,
    PRIMARY KEY (tag, job_id)
);
CREATE FUNCTION holdfast.note_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO holdfast.tagged (job_id, tag) SELECT DISTINCT NEW.id, unnest(NEW.tags);
    ELSE
        DELETE FROM holdfast.tagged WHERE tag = ANY (OLD.tags) AND job_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tags_come AFTER INSERT ON holdfast.job
    FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION holdfast.note_tags();
CREATE TRIGGER tags_go AFTER DELETE ON holdfast.job
    FOR EACH ROW WHEN (OLD.tags IS NOT NULL) EXECUTE FUNCTION holdfast.note_tags();

-- May be claimed now; the primary key is the order of the claim within a lane. `attached`: something hangs on this
-- job (a deadline, a limit, another job that waits for it), so that it does not take the short way.
CREATE TABLE holdfast.ready (
    seq         int8 NOT NULL,
    tag         int8 NOT NULL DEFAULT 0,
    entered_at  timestamptz NOT NULL,
    job_id      uuid NOT NULL,
    priority    int2 NOT NULL,
    attempt     int4 NOT NULL,
    losses      int2 NOT NULL,
    crashes     int2 NOT NULL,
    attached    bool NOT NULL,
    queue       text NOT NULL,
    PRIMARY KEY (queue, priority, tag, seq),
    UNIQUE (job_id)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- Jobs that must run alone, of which there are few.
CREATE INDEX ready_alone ON holdfast.ready (queue, priority, tag, seq) WHERE losses >= 2;

-- Waits for a time: delayed, retrying, snoozed.
CREATE TABLE holdfast.timer (
    due_at    timestamptz NOT NULL,
    job_id    uuid NOT NULL,
    attempt   int4 NOT NULL,
    losses    int2 NOT NULL,
    crashes   int2 NOT NULL,
    attached  bool NOT NULL,
    queue     text NOT NULL,
    PRIMARY KEY (due_at, job_id),
    UNIQUE (job_id)
);
CREATE INDEX timer_by_queue ON holdfast.timer (queue, job_id);

-- The lease: one worker, one token. Keeps the place in the queue, so that recovery does not queue at the tail.
CREATE TABLE holdfast.active (
    token          int8 NOT NULL,
    seq            int8 NOT NULL,
    tag            int8 NOT NULL,
    started_at     timestamptz NOT NULL,
    job_id         uuid NOT NULL,
    worker         uuid NOT NULL,
    attempt        int4 NOT NULL,
    priority       int2 NOT NULL,
    losses         int2 NOT NULL,
    crashes        int2 NOT NULL,
    attached       bool NOT NULL,
    queue          text NOT NULL,
    cancel_reason  text,
    PRIMARY KEY (job_id)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX active_by_worker ON holdfast.active (worker);
CREATE INDEX active_cancelled ON holdfast.active (worker) WHERE cancel_reason IS NOT NULL;

-- Waits for other jobs: `remaining` of them have not arrived yet. `due_at`: not before this time, even then.
CREATE TABLE holdfast.blocked (
    job_id     uuid PRIMARY KEY,
    due_at     timestamptz,
    remaining  int4 NOT NULL,
    attached   bool NOT NULL,
    queue      text NOT NULL
);
CREATE INDEX blocked_by_queue ON holdfast.blocked (queue, job_id);

-- member: when this job ends, it arrives at that join (a blocked job). arrival: it has; only the first counts.
-- An arrival made inside a user's transaction is counted after it, because counting locks the join.
CREATE TABLE holdfast.member (
    job_id   uuid NOT NULL,
    join_id  uuid NOT NULL,
    PRIMARY KEY (job_id, join_id)
);
CREATE INDEX member_by_join ON holdfast.member (join_id);
CREATE TABLE holdfast.arrival (
    join_id  uuid NOT NULL,
    job_id   uuid NOT NULL,
    counted  bool NOT NULL DEFAULT true,
    PRIMARY KEY (join_id, job_id)
);
CREATE INDEX arrival_uncounted ON holdfast.arrival (join_id) WHERE NOT counted;

-- Waits for something other than time, under a key; keeps its place in the queue where it had one.
CREATE TABLE holdfast.parked (
    seq        int8 NOT NULL,
    tag        int8 NOT NULL,
    parked_at  timestamptz NOT NULL,
    job_id     uuid PRIMARY KEY,
    attempt    int4 NOT NULL,
    losses     int2 NOT NULL,
    crashes    int2 NOT NULL,
    attached   bool NOT NULL,
    queue      text NOT NULL,
    reason     text NOT NULL,
    key        text NOT NULL
);
CREATE INDEX parked_by_key ON holdfast.parked (reason, key, seq);
CREATE INDEX parked_by_reason ON holdfast.parked (reason, job_id);
CREATE INDEX parked_by_queue ON holdfast.parked (queue, job_id);

-- Slots of concurrency limits, taken in the claim's transaction.
CREATE TABLE holdfast.slot (
    job_id  uuid PRIMARY KEY,
    key     text NOT NULL
);
CREATE INDEX slot_by_key ON holdfast.slot (key);

-- Ended well or cancelled; append-only until pruned.
CREATE TABLE holdfast.done (
    token       int8,
    started_at  timestamptz,
    ended_at    timestamptz NOT NULL,
    job_id      uuid NOT NULL,
    worker      uuid,
    attempt     int4 NOT NULL,
    cancelled   bool NOT NULL DEFAULT false,
    result      bytea,
    reason      text,
    PRIMARY KEY (job_id)
);
CREATE INDEX done_by_end ON holdfast.done (cancelled, ended_at);
CREATE INDEX done_cancelled ON holdfast.done (job_id) WHERE cancelled;
CREATE INDEX done_by_reason ON holdfast.done (reason, job_id) WHERE reason IS NOT NULL;

-- The dead letters: kept until a person decides. Off the hot path, so what they are looked for by is here, too.
CREATE TABLE holdfast.dead (
    token          int8,
    started_at     timestamptz,
    ended_at       timestamptz NOT NULL,
    job_id         uuid PRIMARY KEY,
    worker         uuid,
    attempt        int4 NOT NULL,
    queue          text NOT NULL,
    task           text NOT NULL,
    tenant         text NOT NULL,
    reason         text NOT NULL,
    error_type     text NOT NULL,
    error_message  text NOT NULL,
    fingerprint    text NOT NULL,
    words          text[] NOT NULL
);
CREATE INDEX dead_by_queue ON holdfast.dead (queue, job_id);
CREATE INDEX dead_by_task ON holdfast.dead (task, job_id);
CREATE INDEX dead_by_tenant ON holdfast.dead (tenant, job_id) WHERE tenant <> '';
CREATE INDEX dead_by_reason ON holdfast.dead (reason, job_id);
CREATE INDEX dead_by_error ON holdfast.dead (error_type, job_id);
CREATE INDEX dead_by_fingerprint ON holdfast.dead (fingerprint, job_id);
-- What is not yet merged into it is read by every search, so that is kept short.
CREATE INDEX dead_by_words ON holdfast.dead USING gin (words) WITH (gin_pending_list_limit = 256);

-- One row per run that did not succeed: why it ended, and hence why there was, or may be, another.
CREATE TABLE holdfast.attempt (
    token          int8 NOT NULL,
    started_at     timestamptz,
    ended_at       timestamptz NOT NULL,
    job_id         uuid NOT NULL,
    worker         uuid,
    number         int4 NOT NULL,
    cause          text NOT NULL,
    error_type     text,
    error_message  text,
    traceback      text,
    PRIMARY KEY (job_id, token)
);

-- The last report of a run; survives retries and the ending.
CREATE TABLE holdfast.progress (
    job_id  uuid PRIMARY KEY,
    at      timestamptz NOT NULL,
    done    float8 NOT NULL,
    total   float8,
    stage   text
);

-- Not started by then: cancelled. Rows only for jobs that have a deadline and have not ended.
CREATE TABLE holdfast.expiry (
    expires_at  timestamptz NOT NULL,
    job_id      uuid NOT NULL UNIQUE,
    PRIMARY KEY (expires_at, job_id)
);

-- One heartbeat per process, not per job.
CREATE TABLE holdfast.worker (
    id           uuid PRIMARY KEY,
    started_at   timestamptz NOT NULL,
    lease_until  timestamptz NOT NULL,
    pid          int4 NOT NULL,
    concurrency  int4 NOT NULL,
    host         text NOT NULL,
    queues       text[] NOT NULL
) WITH (fillfactor = 50);

-- One key, one job, within its window; outlives the job.
CREATE TABLE holdfast.idempotency_key (
    job_id       uuid NOT NULL,
    expires_at   timestamptz NOT NULL,
    tenant       text NOT NULL,
    key          text NOT NULL,
    fingerprint  bytea NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_key_by_end ON holdfast.idempotency_key (expires_at);

-- What operators set. NULL: the default of whoever asks.
CREATE TABLE holdfast.queue_setting (
    queue    text PRIMARY KEY,
    paused   bool NOT NULL DEFAULT false,
    high     int4,
    low      int4,
    weight   float8 NOT NULL DEFAULT 1.0,
    weights  text
);

-- Ready jobs per queue: what is folded into `ready`, and the changes since then, each written by the verb that made
-- it. Writers only add rows, so that no two of them wait for each other. `closed`: the gate of backpressure.
CREATE TABLE holdfast.depth (
    queue   text PRIMARY KEY,
    ready   int8 NOT NULL DEFAULT 0,
    closed  bool NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX depth_closed ON holdfast.depth (queue) WHERE closed;
CREATE TABLE holdfast.depth_change (
    queue   text NOT NULL,
    change  int8 NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX depth_change_by_queue ON holdfast.depth_change (queue);

-- Who does what should be done once; the term grows with every change of hands.
CREATE TABLE holdfast.leader (
    role         text PRIMARY KEY,
    holder       uuid NOT NULL,
    term         int8 NOT NULL,
    lease_until  timestamptz NOT NULL
);
