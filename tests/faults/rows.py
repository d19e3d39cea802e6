"""The whole content of a database, table by table, to be compared; and whether the file itself is sound."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

Rows = dict[str, list[tuple[object, ...]]]


def rows_of(database: Path) -> Rows:
    """Every row of every table, sorted; first the file has to pass SQLite's own check."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {table: sorted(db.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}


#: Verbs whose repetition is on record once more: whoever asks twice may do twice what he has asked for.
TOLD_TWICE = ("record_act",)


def told_once_more(found: Rows, expected: Rows) -> bool:
    """Whether one line more is on record, and nothing else has changed."""
    others = {table: rows for table, rows in found.items() if table not in ("setting_change", "sqlite_sequence")}
    return others == {table: expected[table] for table in others} and (
        len(found["setting_change"]) == len(expected["setting_change"]) + 1
    )


def difference(found: Rows, expected: Rows) -> str:
    """What is different, to be read by a person."""
    return "; ".join(
        f"{table}: found {found.get(table)}, expected {expected.get(table)}"
        for table in sorted(found.keys() | expected.keys())
        if found.get(table) != expected.get(table)
    )
