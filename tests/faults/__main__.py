"""`python -m tests.faults`: plays the table, with a line for every cell and a summary in Markdown or JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from tests.campaign.where import Where
from tests.faults.scenes.playing import play
from tests.faults.table.cells import REDIS, SQLITE, STORES, Cell
from tests.faults.table.whole import covering, table
from tests.history.postgres_audit import remove_postgres_audit
from tests.postgres.emptied import empty
from tests.postgres.shared import QUICK, chosen_binaries, make_logins_cheap, own_directory

from holdfast import Holdfast
from holdfast.local import LocalPostgres

SCHEMA = "holdfast"


@dataclass(slots=True)
class Outcome:
    """What came of a run of the table."""

    played: list[tuple[Cell, float, str]] = field(default_factory=list)
    """With the seconds that it took, and what was wrong with it."""

    @property
    def broken(self) -> list[tuple[Cell, float, str]]:
        return [each for each in self.played if each[2]]

    def markdown(self, cells: list[Cell]) -> str:
        lines = [
            "| store | cells played | sound | tests elsewhere | not meaningful or not built |",
            "|---|--:|--:|--:|--:|",
        ]
        for store in sorted({cell.store for cell in cells}):
            mine = [cell for cell in cells if cell.store == store]
            done = [wrong for cell, _, wrong in self.played if cell.store == store]
            counts = [len(done), done.count(""), sum(bool(c.test) for c in mine), sum(bool(c.reason) for c in mine)]
            lines.append(f"| {store} | {' | '.join(map(str, counts))} |")
        lines += [f"\nBROKEN {cell.name}: {wrong}" for cell, _, wrong in self.broken]
        return "\n".join(lines)

    def as_json(self, cells: list[Cell]) -> str:
        played = [{"cell": cell.name, "seconds": round(took, 1), "wrong": wrong} for cell, took, wrong in self.played]
        others = {cell.name: cell.test or cell.reason for cell in cells if not cell.scene}
        return json.dumps({"played": played, "others": others}, indent=1)


class Places:
    """An empty store for every cell: a file of its own, or the tables of one server."""

    def __init__(self, server: LocalPostgres | None) -> None:
        self.server = server
        self._url = "" if server is None else f"{server.url}?sslmode=disable"

    @contextlib.contextmanager
    def place(self, cell: Cell) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="holdfast-cell-") as name:
            if cell.store != SQLITE:
                remove_postgres_audit(self._url, SCHEMA)
                with psycopg.connect(self._url, autocommit=True) as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'"
                    )
                    empty(connection, SCHEMA)
                Where(url=self._url, schema=SCHEMA).say(Path(name))
            yield Path(name)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", default="", help="cells whose names have one of these in them: one|other")
    parser.add_argument("--store", choices=(*STORES, REDIS), help="of one store only")
    parser.add_argument("--covering", type=int, metavar="SEED", help="only a part in which everything occurs")
    parser.add_argument("--list", action="store_true", help="name the cells, play nothing")
    parser.add_argument("--json", type=Path, help="write the summary here, too")
    given = parser.parse_args(words)
    everything = table()
    cells = covering(everything, seed=given.covering) if given.covering is not None else everything
    cells = [cell for cell in cells if given.store in (None, cell.store)]
    cells = [cell for cell in cells if any(text in cell.name for text in given.only.split("|"))]
    if given.list:
        for cell in cells:
            print(cell.name, cell.test or (cell.reason and f"({cell.reason})"))
        return 0
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)
    outcome = Outcome()
    played = [cell for cell in cells if cell.scene]
    with contextlib.ExitStack() as stack:
        needs_server = any(cell.store != SQLITE for cell in played)
        places = Places(stack.enter_context(_server()) if needs_server else None)
        for number, cell in enumerate(played, 1):
            began = time.monotonic()
            wrong = _played(cell, places)
            took_s = time.monotonic() - began
            outcome.played.append((cell, took_s, wrong))
            print(f"{number}/{len(played)} {cell.name} {took_s:.1f} s {wrong or 'sound'}", flush=True)
    print(outcome.markdown(cells))
    print("faults:", dict(Counter(cell.fault for cell, _, _ in outcome.played)))
    if given.json:
        given.json.write_text(outcome.as_json(cells))
    return 1 if outcome.broken else 0


def _played(cell: Cell, places: Places) -> str:
    try:
        with places.place(cell) as directory:
            play(cell, directory, places.server)
    except Exception as error:
        shown = error.__cause__ or (None if str(error) else error)  # an assertion without words says where it stands
        where = "".join(traceback.format_exception(shown, limit=-6)) if shown else ""
        return f"{type(error).__name__}: {error} {where}".rstrip()
    return ""


@contextlib.contextmanager
def _server() -> Iterator[LocalPostgres]:
    with LocalPostgres(own_directory(), settings=QUICK, binaries=chosen_binaries(), temporary=True) as server:
        make_logins_cheap(server)
        asyncio.run(Holdfast(server.url, schema=SCHEMA).migrate())
        yield server


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
