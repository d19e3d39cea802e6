"""Rows of given jobs are looked up, and never searched for in a whole table (decision 0101)."""

from __future__ import annotations

import re

import pytest
from tests.architecture.sources import PACKAGE

SQL = PACKAGE / "stores" / "postgres" / "sql"
#: Reports and repairs, which read ranges on purpose and are not given any ids.
_SURVEYS = {"sweep.sql", "list_jobs.sql", "queues.sql"}
_PLAIN_JOIN = re.compile(r"JOIN holdfast\.\w+ (\w+) ON \1\.(?:id|job_id) = \w+\.(?:id|job_id)\b")
_PLAIN_USE = re.compile(
    r"(?:USING|FROM) (?:unnest\([^)]*\)|\w+)\s+(?:AS )?(\w+)(?: \([^)]*\))?\s+WHERE \w+\.job_id = \1\."
)


def plain_joins(text: str) -> list[str]:
    return [found[0] for pattern in (_PLAIN_JOIN, _PLAIN_USE) for found in pattern.finditer(text)]


@pytest.mark.parametrize("name", sorted(file.name for file in SQL.glob("*.sql") if file.name not in _SURVEYS))
def test_ids_are_looked_up(name: str) -> None:
    assert not plain_joins((SQL / name).read_text())


@pytest.mark.parametrize(
    "plain",
    [
        "SELECT 1 FROM unnest($1::uuid[]) AS a (id) LEFT JOIN holdfast.ready r ON r.job_id = a.id",
        "DELETE FROM holdfast.parked p USING oldest o WHERE p.job_id = o.job_id",
        "UPDATE holdfast.ready r SET tag = m.tag FROM unnest($1, $2) AS m (job_id, tag)\nWHERE r.job_id = m.job_id",
    ],
)
def test_a_plain_join_is_found(plain: str) -> None:
    assert plain_joins(plain)
