"""What jobs with gates cost the server does not grow with the backlog: indexes alone, whatever statistics say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres.statements import statements

Connection = psycopg.Connection[Any]
QUOTA = 50
TABLES = ("ready", "job", "slot", "gate", "parked", "active", "member", "expiry", "done")

_JOBS = """
WITH body AS (
    INSERT INTO job (id, created_at, priority, task, queue, payload, gates, limit_key, limit_size)
    SELECT gen_random_uuid(), now(), 5, 't', 'plan', '{{}}', format('[["limit","k%%s",1,"","wait"]]', n), 'k' || n, 1
    FROM generate_series(%s::int8, %s::int8) AS n RETURNING id, limit_key
)
INSERT INTO ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT substr(limit_key, 2)::int8, now(), id, 5, 0, 0, 0, true, 'plan' FROM body
"""
#: Nobody comes so far, so they need no bodies.
_BACKLOG = """
INSERT INTO ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT n, now(), gen_random_uuid(), 5, 0, 0, 0, true, 'plan' FROM generate_series(%s::int8, %s::int8) AS n
"""
_WAITING = """
INSERT INTO parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
SELECT n, 0, now(), gen_random_uuid(), 0, 0, 0, true, 'plan', 'limit', 'other ' || n % 1000
FROM generate_series(1, 100000) AS n
"""
#: Tables that were full once: statistics say that a page holds nothing, and so all indexes seem to be alike.
_ONCE_FULL = """
INSERT INTO parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
SELECT n, 0, now(), gen_random_uuid(), 0, 0, 0, true, 'plan', 'limit', 'k' FROM generate_series(1, 20000) AS n;
INSERT INTO gate (kind, key, due_at) SELECT 'limit', 'k' || n, now() FROM generate_series(1, 20000) AS n;
INSERT INTO slot (job_id, key) SELECT gen_random_uuid(), 'k' || n FROM generate_series(1, 20000) AS n;
INSERT INTO job (id, created_at, priority, task, queue, payload)
SELECT gen_random_uuid(), now(), 5, 't', 'plan', '{{}}' FROM generate_series(1, 20000);
INSERT INTO ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT n, now(), gen_random_uuid(), 5, 0, 0, 0, true, 'plan' FROM generate_series(1, 20000) AS n;
INSERT INTO active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes, attached, queue)
SELECT n, n, 0, now(), gen_random_uuid(), gen_random_uuid(), 1, 5, 0, 0, true, 'plan' FROM generate_series(1, 20000) n;
INSERT INTO member (job_id, join_id) SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 20000);
INSERT INTO expiry (job_id, expires_at) SELECT gen_random_uuid(), now() FROM generate_series(1, 20000);
DELETE FROM parked; DELETE FROM gate; DELETE FROM slot; DELETE FROM ready; DELETE FROM job; DELETE FROM active;
DELETE FROM member; DELETE FROM expiry;
"""
#: Others are at work, wait for one another, and have deadlines.
_OTHERS = """
WITH other AS (SELECT n, gen_random_uuid() AS id FROM generate_series(%s::int8, %s::int8) AS n), member AS (
    INSERT INTO member (job_id, join_id) SELECT id, gen_random_uuid() FROM other
), expiry AS (
    INSERT INTO expiry (job_id, expires_at) SELECT id, now() FROM other
)
INSERT INTO active (token, seq, tag, started_at, job_id, worker, attempt, priority, losses, crashes, attached, queue)
SELECT -n, n, 0, now(), id, gen_random_uuid(), 1, 5, 0, 0, true, 'plan' FROM other
"""


@pytest.fixture
def db(postgres_tables: PostgresSchema) -> Iterator[Connection]:
    with psycopg.connect(postgres_tables.url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {postgres_tables.schema}")  # type: ignore[call-overload]
        yield connection


class Desk:
    """A worker who claims by the functions themselves, and says how many blocks each call has touched."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self.worker = uuid4()
        self.floor = 1
        db.execute(
            "INSERT INTO worker VALUES (%s, now(), now() + interval '1 hour', 1, 1, 'here', '{}')", [self.worker]
        )

    def heads(self) -> list[UUID]:
        rows = self.db.execute(
            "SELECT id FROM claim_jobs(%s, '{plan}', '{5}', '{0}', %s, %s) WHERE kind = 'attached'",
            (self.worker, [self.floor], [QUOTA]),
        ).fetchall()
        assert len(rows) == QUOTA
        return [row[0] for row in rows]

    def touched(self, call: str, *args: object) -> int:
        row = self.db.execute(
            sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM {}").format(
                sql.SQL(call).format(*map(sql.Literal, args))  # type: ignore[arg-type]
            )
        ).fetchone()
        assert row is not None
        plan = (row[0] if not isinstance(row[0], str) else json.loads(row[0]))[0]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    def live(self) -> tuple[int, int, int]:
        """The head of the lane, the short claim, the settlement."""
        lane = ([self.floor], [QUOTA])
        head = self.touched("claim_jobs({}, '{{plan}}', '{{5}}', '{{0}}', {}::int8[], {})", self.worker, *lane)
        claimed = self.touched("claim_limited({}, {})", self.worker, self.heads())
        runs = self.runs()
        assert len(runs) == QUOTA, "it was a real claim"
        ids, tokens = map(list, zip(*runs, strict=True))
        settled = self.touched(
            "settle_successes({}, {}, {}, {}::bytea[], '{{}}', true)", self.worker, ids, tokens, [None] * QUOTA
        )
        assert not self.runs()
        self.floor += QUOTA
        return head, claimed, settled

    def runs(self) -> list[tuple[UUID, int]]:
        return self.db.execute("SELECT job_id, token FROM active WHERE worker = %s", [self.worker]).fetchall()

    def judge(self) -> int:
        """The longer way: pick, hold, and claim all of them."""
        with self.db.transaction():
            ids = self.heads()
            picked = self.touched("pick_jobs({}, {})", self.worker, ids)
            keys = [f"other {number}" for number in range(QUOTA)]
            held = self.touched("hold_gates({}, '{{}}', '{{}}', '{{}}', {}, true, NULL)", keys, ids)
            looked = self.touched("look_after({}, {}, true)", ["limit"] * QUOTA, keys)
            raise psycopg.Rollback
        return picked + held + looked

    def seq_scans(self, tables: Sequence[str] = TABLES) -> dict[str, int]:
        if self.db.info.server_version >= 150000:  # 14 counts by and by: there, only the blocks tell
            self.db.execute("SELECT pg_stat_force_next_flush()")
        rows = self.db.execute(
            "SELECT relname, seq_scan FROM pg_stat_user_tables "
            "WHERE relid = ANY (SELECT to_regclass(t) FROM unnest(%s::text[]) t)",
            [list(tables)],
        ).fetchall()
        return dict(rows)


def test_only_indexes_are_read_and_a_million_costs_what_a_thousand_does(db: Connection) -> None:
    desk = Desk(db)
    db.execute(_ONCE_FULL)
    db.execute("VACUUM (ANALYZE, TRUNCATE off)")  # the worst advice that there is
    db.execute(_JOBS, (1, 1_000))
    db.execute(_OTHERS, (1, 1_000))
    db.execute(_WAITING)
    db.execute("INSERT INTO gate (kind, key) SELECT 'limit', 'other ' || n FROM generate_series(0, 999) AS n")
    desk.live()  # the first one reads the catalogue, too
    desk.judge()
    few, few_judged = desk.live(), desk.judge()
    assert max(*few, few_judged) <= 60 * QUOTA, f"blocks for so many jobs: {few}, {few_judged}"
    db.execute(_BACKLOG, (1_001, 1_000_000))
    db.execute(_OTHERS, (1_001, 50_000))
    for advice in ("none", "fresh"):
        if advice == "fresh":
            db.execute("ANALYZE")
        desk.live()  # plans are made anew, for which the catalogue is read
        desk.judge()
        before = desk.seq_scans()
        many, judged = desk.live(), desk.judge()
        after = desk.seq_scans()
        assert after == {**before, "active": after["active"]}, (
            "the test itself reads `active`, and nobody anything else"
        )
        for cost, was in zip((*many, judged), (*few, few_judged), strict=True):
            assert cost <= 1.5 * was, f"{many}, {judged} with a million, {few}, {few_judged} with a thousand"


def test_the_age_of_who_waits_is_found_by_one_index_whoever_waits_elsewhere(
    db: Connection, postgres_tables: PostgresSchema
) -> None:
    survey = statements(postgres_tables.schema)["queues.survey"].replace("$1", "'{plan,alone}'")
    db.execute("SET enable_seqscan = off")
    marked = (
        "INSERT INTO queue_setting (queue, weight, high_age_s, low_age_s) VALUES ('plan', 1, 9, 1), ('alone', 1, 9, 1)"
    )
    db.execute(marked)
    db.execute(_ONCE_FULL)
    db.execute("VACUUM (ANALYZE, TRUNCATE off)")
    db.execute(_WAITING)
    for advice in ("bad", "fresh"):
        if advice == "fresh":
            db.execute("ANALYZE")
        ages = {row[0]: row[-1] for row in db.execute(survey.encode()).fetchall()}
        assert [queue for queue, age_s in ages.items() if age_s is not None] == ["plan"]
        plan = db.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + survey.encode()).fetchone()
        assert plan is not None
        root = (plan[0] if not isinstance(plan[0], str) else json.loads(plan[0]))[0]["Plan"]
        cost = root["Shared Hit Blocks"] + root["Shared Read Blocks"]
        assert cost <= 500, f"{advice}: {cost} blocks"
