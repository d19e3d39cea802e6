"""sqlite3's errors become ours by their codes; made by a real database, not by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.errors import StoreBroken, StoreDataError, StoreError, StoreUnavailable
from holdfast.stores.sqlite.errors import translate


def _busy(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as one, closing(sqlite3.connect(file, timeout=0)) as two:
        one.execute("BEGIN IMMEDIATE")
        two.execute("INSERT INTO t VALUES (2)")


def _full(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA max_page_count = 3")
        db.execute("INSERT INTO t VALUES (zeroblob(100000))")


def _read_only(file: Path) -> None:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        db.execute("INSERT INTO t VALUES (2)")


def _interrupted(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.set_progress_handler(lambda: 1, 1)
        db.execute("SELECT count(*) FROM t").fetchone()


def _duplicate(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("INSERT INTO t VALUES (1)")


def _missing(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("SELECT * FROM nowhere")


def _unopenable(file: Path) -> None:
    sqlite3.connect(file / "below" / "a file")


CASES: list[tuple[Callable[[Path], None], type[StoreError], str]] = [
    (_busy, StoreUnavailable, "it is locked by another process; the write is tried again (database is locked)"),
    (_full, StoreUnavailable, "the disk is full; nothing of this write was kept; free some space"),
    (_interrupted, StoreUnavailable, "the statement was interrupted (interrupted)"),
    (_read_only, StoreBroken, "it is read-only; give this user the right to write the file and its directory"),
    (_unopenable, StoreBroken, "it cannot be opened; check that the directory exists"),
    (_missing, StoreBroken, "no such table: nowhere"),
    (_duplicate, StoreDataError, "UNIQUE constraint failed"),
]


@pytest.mark.parametrize(("make", "kind", "message"), CASES, ids=[make.__name__[1:] for make, *_ in CASES])
def test_an_error_is_told_by_what_to_do_about_it(
    make: Callable[[Path], None], kind: type[StoreError], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "t.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE t (a PRIMARY KEY)")
        db.execute("INSERT INTO t VALUES (1)")
        db.commit()
    with pytest.raises(sqlite3.Error) as caught:
        make(file)
    ours = translate(caught.value, str(file))
    assert type(ours) is kind
    assert str(ours).startswith(f"SQLite store {file}")
    assert message in str(ours)
