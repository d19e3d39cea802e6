"""Lines at gates on PostgreSQL: the rule is the one of the core, whoever parks; and they cost the same however long."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres.fixtures import PostgresSchema
from tests.postgres.test_claim_plan import Connection, db

from holdfast.core.tenancy import COST, FURTHEST_TAG, cost_of, line_tag
from holdfast.stores.postgres.statements import statements

__all__ = ["db"]  # a fixture

tags = st.integers(0, FURTHEST_TAG - 1)
_PARK = """
WITH new AS (
    INSERT INTO job (id, created_at, priority, task, queue, tenant, payload)
    SELECT gen_random_uuid(), now(), %(priority)s, 't', 'plan', %(tenant)s, '' FROM generate_series(1, %(count)s)
    RETURNING id, tenant, priority
)
INSERT INTO parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
SELECT nextval('place'), %(tag)s, now(), id, 0, 0, 0, true, 'plan', 'limit', %(key)s FROM new
RETURNING line
"""


def _park(
    db: Connection, tenant: str = "a", count: int = 1, *, priority: int = 5, tag: int = 1, key: str = "k"
) -> list[int]:
    """As programs of earlier versions do: they say nothing of lines."""
    which = {"tenant": tenant, "count": count, "priority": priority, "tag": tag, "key": key}
    return [row[0] for row in db.execute(_PARK, which).fetchall()]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tags, st.none() | tags, st.none() | tags, st.floats(0.01, 100))
def test_the_rule_is_that_of_the_core(
    db: Connection, reached: int, head: int | None, last: int | None, weight: float
) -> None:
    cost = cost_of(weight)
    row = db.execute("SELECT line_tag(%s, %s, %s, %s)", (reached, head, last, cost)).fetchone()
    assert row == (line_tag(reached=reached, head=head, last=last, cost=cost),)


def test_whoever_parks_need_not_know_of_lines(db: Connection) -> None:
    assert _park(db, "a", 3) == [COST - 1, 2 * COST - 1, 3 * COST - 1]
    assert _park(db, "b", 2) == [COST - 1, 2 * COST - 1], "beside the other"
    assert _park(db, "a") == [4 * COST - 1]
    assert _park(db, "a", priority=9) == [COST - 1], "in each lane for itself"
    assert _park(db, "a", key="other") == [COST - 1], "and at each gate"
    assert _park(db, "c", tag=0) == [0], "without tenants there are no tags"
    db.execute("INSERT INTO tenant_setting (tenant, weight) VALUES ('heavy', 10)")
    assert _park(db, "heavy", 2) == [COST // 10 - 1, 2 * COST // 10 - 1]
    db.execute("INSERT INTO turn (kind, key, queue, priority, reached) VALUES ('limit', 'k', 'plan', 5, 50000)")
    assert _park(db, "d") == [50_000 + COST - 1], "from where they have come to"
    lanes = db.execute("SELECT queue, priority FROM lanes_at('limit', 'k', 50)").fetchall()
    assert lanes == [("plan", 5), ("plan", 9)]


@pytest.mark.parametrize("reached", [-1, 1 << 62, 0])
def test_what_makes_no_sense_counts_as_not_there(db: Connection, reached: int) -> None:
    db.execute(
        "INSERT INTO turn (kind, key, queue, priority, due, reached) VALUES ('limit', 'k', 'plan', 5, 'NaN', %s)",
        [reached],
    )
    assert _park(db) == [COST - 1]


def test_a_body_that_is_gone_stands_somewhere(db: Connection) -> None:
    _park(db)
    db.execute("DELETE FROM job")
    db.execute("UPDATE parked SET key = 'other'")
    assert db.execute("SELECT key, queue, priority, line FROM parked").fetchall() == [("other", "plan", 5, COST - 1)]


def test_who_goes_on_brings_a_tag_there(db: Connection) -> None:
    _park(db, "a", 3)
    _park(db, "a", 2, key="other")
    _park(db, "b", 1)
    db.execute("UPDATE parked SET key = 'other' WHERE key = 'k' AND tenant = 'b'")
    db.execute("UPDATE parked SET key = 'other' WHERE seq = (SELECT min(seq) FROM parked)")
    lines = db.execute("SELECT tenant, line FROM parked WHERE key = 'other' ORDER BY line, seq").fetchall()
    assert lines == [("a", COST - 1), ("b", COST - 1), ("a", 2 * COST - 1), ("a", 3 * COST - 1)]
    db.execute("UPDATE parked SET queue = 'plain', tag = 0 WHERE tenant = 'b'")
    assert db.execute("SELECT tenant, line FROM parked WHERE queue = 'plain'").fetchall() == [("", 0)]


@pytest.mark.parametrize("line", [(1 << 63) - 1, -(1 << 63), 1 << 60, -5])
def test_tags_that_make_no_sense_stop_nobody(db: Connection, line: int) -> None:
    _park(db, "b")
    db.execute("UPDATE parked SET line = %s", [line])
    assert _park(db, "a") == [COST - 1]
    assert _park(db, "b")[0] >= COST - 1


def _buffers(db: Connection, statement: str) -> int:
    """Blocks that it touches, with the triggers that it fires."""
    row = db.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement.encode()).fetchone()
    assert row is not None
    root: dict[str, Any] = (row[0] if not isinstance(row[0], str) else json.loads(row[0]))[0]["Plan"]
    return int(root["Shared Hit Blocks"] + root["Shared Read Blocks"])


_CROWD = """
INSERT INTO parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key, priority,
                    tenant, line)
SELECT nextval('place'), 0, now(), gen_random_uuid(), 0, 0, 0, true, 'plan', 'limit', 'k', 5, 't' || n %% %s, n * 10
FROM generate_series(%s::int8, %s::int8) AS n
"""


def _crowd_in(db: Connection, first: int, last: int, *, tenants: int = 1000) -> None:
    """With tags as they are given here. The tables are those of other tests, too: they have their triggers again."""
    with db.transaction():
        db.execute("ALTER TABLE parked DISABLE TRIGGER stand_in_line")
        db.execute(_CROWD, (tenants, first, last))
        db.execute("ALTER TABLE parked ENABLE TRIGGER stand_in_line")


def test_a_line_of_a_hundred_thousand_costs_what_one_of_a_thousand_does(
    db: Connection, postgres_tables: PostgresSchema
) -> None:
    sql = statements(postgres_tables.schema)
    line = sql["serving.line"].replace("$1", "'limit'").replace("$2", "'k'").replace("$3", "20").replace("$4", "50")
    db.execute("SET enable_seqscan = off")
    _crowd_in(db, 1, 20_000)
    db.execute("DELETE FROM parked")
    db.execute("VACUUM (ANALYZE, TRUNCATE off) parked")  # the worst advice that there is
    costs: list[list[int]] = []
    for first, last, advice in ((1, 1_000, "none"), (1_001, 100_000, "none"), (0, 0, "fresh")):
        if last:
            _crowd_in(db, first, last)
        if advice == "fresh":
            db.execute("ANALYZE parked")
        for tenant in ("t7", "new"):
            _park(db, tenant)  # plans are made
        one = [_buffers(db, line)]
        for tenant in ("t7", "new"):
            statement = _PARK.replace("%(priority)s", "5").replace("%(count)s", "1").replace("%(tag)s", "1")
            one.append(_buffers(db, statement.replace("%(tenant)s", f"'{tenant}'").replace("%(key)s", "'k'")))
        costs.append(one)
    for later in costs[1:]:
        assert all(cost <= 1.5 * was + 20 for cost, was in zip(later, costs[0], strict=True)), costs


def test_very_many_of_a_few_tenants_cost_what_a_few_do(db: Connection, postgres_tables: PostgresSchema) -> None:
    """Fresh statistics say that whoever is asked for is one of a great many, and that a sort would do."""
    sql = statements(postgres_tables.schema)
    line = sql["serving.line"].replace("$1", "'limit'").replace("$2", "'k'").replace("$3", "20").replace("$4", "50")
    places = sql["serving.preview"].replace("$1", "ARRAY['limit']").replace("$2", "ARRAY['k']")
    preview = places.replace("$3", "20").replace("$4", "50")
    db.execute("SET enable_seqscan = off")
    costs: list[list[int]] = []
    for first, last in ((1, 1_000), (1_001, 60_000)):
        _crowd_in(db, first, last, tenants=10)
        db.execute("ANALYZE parked")
        costs.append([_buffers(db, preview), _buffers(db, line)])
    assert all(cost <= 1.5 * was + 20 for cost, was in zip(costs[1], costs[0], strict=True)), costs
