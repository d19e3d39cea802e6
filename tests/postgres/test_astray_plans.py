"""Looking for those who stand behind others for no reason costs the same however many wait where they should."""

from __future__ import annotations

import json

import psycopg
import pytest
from tests.postgres.fixtures import PostgresSchema

from holdfast.stores.postgres.statements import statements

_WAITING = """
INSERT INTO depth (queue) VALUES ('plan');
INSERT INTO ready (seq, entered_at, job_id, priority, attempt, losses, crashes, attached, queue)
SELECT n, now(), gen_random_uuid(), 5, 0, 0, 0, true, 'plan' FROM generate_series(1, 50000) AS n;
INSERT INTO parked (seq, tag, parked_at, job_id, attempt, losses, crashes, attached, queue, reason, key)
SELECT n, 0, now(), gen_random_uuid(), 0, 0, 0, true, 'plan', 'limit', 'bank' FROM generate_series(1, 50000) AS n;
"""


@pytest.mark.parametrize("advice", ["none", "fresh", "of empty tables"])
def test_only_what_is_behind_is_read(advice: str, postgres_tables: PostgresSchema) -> None:
    sql = statements(postgres_tables.schema)
    with psycopg.connect(postgres_tables.url, autocommit=True) as db:
        db.execute(f"SET search_path = {postgres_tables.schema}")
        if advice == "of empty tables":
            db.execute("ANALYZE")
        db.execute(_WAITING)
        if advice == "fresh":
            db.execute("ANALYZE")
        for name, args in {
            "sweep.step_forward": "1000",
            "serving.astray": "'limit', '{bank}', 10000",
        }.items():
            types = {"sweep.step_forward": "int8", "serving.astray": "text, text[], int8"}[name]
            db.execute(f"PREPARE asked ({types}) AS {sql[name]}")
            row = db.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked({args})").fetchone()
            assert row is not None
            plan = (row[0] if not isinstance(row[0], str) else json.loads(row[0]))[0]["Plan"]
            touched = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            assert touched <= 200, f"{name} has read {touched} blocks to find nobody"
            db.execute("DEALLOCATE asked")
