"""The claim's plan: index scans only, whatever the statistics say, and a cost that does not grow with the backlog."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from tests.postgres.fixtures import PostgresSchema

Connection = psycopg.Connection[Any]
QUOTA = 50

_FILL = """
INSERT INTO {schema}.ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT n, now(), gen_random_uuid(), 5, 0, 0, 0, false, 'plan' FROM generate_series(%s::int8, %s::int8) AS n
"""


@pytest.fixture
def db(postgres_tables: PostgresSchema) -> Iterator[Connection]:
    with psycopg.connect(postgres_tables.url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {postgres_tables.schema}")  # type: ignore[call-overload]
        yield connection


class ClaimStatement:
    """The statement inside the function `claim_jobs`, under the settings of the function, to be explained."""

    def __init__(self, db: Connection, schema: str, *, function: str = "claim_jobs", name: str = "claim") -> None:
        self.db = db
        self.name = name
        row = db.execute(
            "SELECT prosrc, proconfig FROM pg_proc WHERE proname = %s AND pronamespace = %s::regnamespace",
            (function, schema),
        ).fetchone()
        assert row is not None
        body, self.pins = row
        statement = body.partition("RETURN QUERY")[2].partition(";")[0]
        names = ("_worker", "_queues", "_priorities", "_tags", "_seqs", "_quotas")
        for number, argument in enumerate(names, 1):
            statement = re.sub(rf"\b{argument}\b", f"${number}", statement)
        self.worker = uuid4()
        db.execute(
            "INSERT INTO worker VALUES (%s, now(), now() + interval '1 hour', 1, 1, 'here', '{}')", [self.worker]
        )
        if name == "claim":
            db.execute("DEALLOCATE ALL")
        types = "uuid, text[], int2[], int8[], int8[], int4[]"
        with db.transaction():
            self.pin()
            db.execute(sql.SQL(f"PREPARE {name} ({types}) AS {statement}"))  # type: ignore[arg-type]

    def pin(self) -> None:
        for pin in self.pins:
            name, _, value = pin.partition("=")
            self.db.execute("SELECT set_config(%s, %s, true)", (name, value))

    def claim(self, *, floor: int = 0, tag: int = 0) -> dict[str, Any]:
        """Claim, really, and say how."""
        with self.db.transaction():
            self.pin()
            call = sql.SQL(
                "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {} ({}, '{{plan}}', '{{5}}', {}, {}, {})"
            ).format(
                sql.Identifier(self.name), sql.Literal(self.worker), sql.Literal([tag]), sql.Literal([floor]),
                sql.Literal([QUOTA]),
            )  # fmt: skip
            row = self.db.execute(call).fetchone()
        assert row is not None
        plan = row[0] if not isinstance(row[0], str) else json.loads(row[0])
        return dict(plan[0]["Plan"])

    def next_seq(self) -> int:
        row = self.db.execute("SELECT coalesce(max(seq), 0) + 1 FROM active").fetchone()
        assert row is not None
        return int(row[0])


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def buffers(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def search(plan: dict[str, Any]) -> int:
    """Blocks read to find the head of the lane."""
    return sum(buffers(n) for n in nodes(plan) if (n["Node Type"], n.get("Relation Name")) == ("Index Scan", "ready"))


def scans(plan: dict[str, Any]) -> set[tuple[str, str]]:
    """(kind of scan, table) of every scan of a table."""
    return {(node["Node Type"], node["Relation Name"]) for node in nodes(plan) if node["Node Type"].endswith("Scan")
            and "Relation Name" in node}  # fmt: skip


def fill(db: Connection, schema: str, first: int, last: int) -> None:
    db.execute(_FILL.format(schema=schema), (first, last))  # type: ignore[call-overload]


def test_only_indexes_are_read_and_a_million_costs_what_a_thousand_does(
    db: Connection, postgres_tables: PostgresSchema
) -> None:
    statement = ClaimStatement(db, postgres_tables.schema)
    db.execute("ANALYZE ready")  # while it is empty: the worst advice that statistics can give
    fill(db, postgres_tables.schema, 1, 1_000)
    statement.claim()  # the first one reads the catalogue, too
    few = statement.claim(floor=statement.next_seq())
    fill(db, postgres_tables.schema, 1_001, 1_000_000)
    for advice in ("none", "fresh"):
        if advice == "fresh":
            db.execute("ANALYZE ready")
        many = statement.claim(floor=statement.next_seq())
        assert {kind for kind, _ in scans(many)} <= {"Index Scan", "Index Only Scan", "Tid Scan"}, scans(many)
        assert ("Index Scan", "ready") in scans(many)
        assert buffers(many) <= 1.5 * buffers(few), f"{buffers(many)} with a million, {buffers(few)} with a thousand"
    leased = db.execute("SELECT count(*) FROM active").fetchone()
    assert leased == (4 * QUOTA,), "they were real claims"


def test_a_pinned_snapshot_does_not_make_claims_dearer(db: Connection, postgres_tables: PostgresSchema) -> None:
    statement = ClaimStatement(db, postgres_tables.schema)
    fill(db, postgres_tables.schema, 1, 10_000)
    statement.claim()
    with psycopg.connect(postgres_tables.url) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")  # from here on nothing that is deleted may be cleaned up
        costs = [search(statement.claim(floor=statement.next_seq())) for _ in range(80)]
        from_the_ground = search(statement.claim())
    early, late = sum(costs[:10]), sum(costs[-10:])
    assert late <= 1.5 * early, f"the claims' cost has grown under an old snapshot: {costs}"
    assert from_the_ground > 3 * costs[-1], "without floors it does: every claim passes what was taken before"


def test_the_pins_end_with_the_function(db: Connection) -> None:
    before = db.execute("SHOW enable_seqscan").fetchone()
    db.execute("SELECT * FROM settle_jobs(gen_random_uuid(), '{}', '{}', '{}')")
    assert db.execute("SHOW enable_seqscan").fetchone() == before == ("on",)
