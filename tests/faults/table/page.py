"""docs/faults.md: the table of faults for readers, made from the cells. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.table import environment, failpoints, files, redis, servers
from tests.faults.table.cells import Cell, Strike, fault_at
from tests.faults.table.whole import table

HEAD = """\
# Faults

What is done to Holdfast, when, and what must hold. Made from the table in `tests/faults/table`
(`python -m tests.docs.generate`), of which no cell is silently absent: each is played, or names the test that plays it,
or says why it is not meaningful. `python -m tests.faults` plays all of it, `--only settle_jobs` a part; `make test`
plays a part in which every moment and every fault occurs.

A scene has real workers, producers and operators on a real store, with jobs of every kind. Somebody is struck at the
moment; the others have to bring everything to an end; then the checker (`tests/history`) joins what was asked, what ran
and what the store has on record. Nothing may be lost, run twice without a cause, be written by a run that has lost its
job, or be left alive.
"""
_KINDS = ("fail", "hang", "kill -9", "SIGSTOP past the lease")
_MARKS = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_REDIS = "PostgreSQL with Redis"


def page() -> str:
    cells = table()
    lists = (files.PART, environment.PART, environment.OTHERS)
    rest = [_list(part, [cell for cell in cells if cell.part == part]) for part in lists]
    return "\n".join(
        [
            HEAD,
            _counts(cells),
            _failpoints(cells),
            _servers(cells, servers.PART, servers.MOMENTS),
            _servers(cells, redis.PART, redis.MOMENTS),
            _servers(cells, redis.CLUSTER, redis.MOMENTS),
            *rest,
        ]
    )


def _counts(cells: list[Cell]) -> str:
    played, named = sum(bool(cell.scene) for cell in cells), sum(bool(cell.test) for cell in cells)
    return (
        f"Of {len(cells)} cells {played} are played by the table, {named} by a test of their own, and "
        f"{len(cells) - played - named} are listed with a reason.\n"
    )


def _failpoints(cells: list[Cell]) -> str:
    mine = {(c.moment, c.fault, c.store): c for c in cells if c.part == failpoints.PART}
    lines = [
        "## At every failpoint\n",
        "A verb of the store has three: `begin` (asked for, nothing has happened: *fail before*), `inside` (executed,",
        "not committed) and `committed` (the answer is not out: *execute, then fail*). What must hold:\n",
        *(f"- **{kind}**: {failpoints.HOLDS[strike]}." for kind, strike in zip(_KINDS, Strike, strict=True)),
        f"- **inside, on SQLite**, hang and SIGSTOP: {failpoints.LOCKED}.",
        "\n| moment | also called | " + " | ".join(_KINDS) + " |",
        "|---|---|" + "---|" * len(_KINDS),
    ]
    reasons: list[str] = []
    for point in failpoints.points():
        shown = [_stores([mine[point, fault_at(point, kind), store] for store in _MARKS], reasons) for kind in Strike]
        lines.append(f"| `{point}` | {failpoints.NAMES.get(point, '')} | {' | '.join(shown)} |")
    everywhere = " | ".join([_REDIS] * len(_KINDS))
    lines += [f"| `{point}` | {failpoints.NAMES[point]} | {everywhere} |" for point in failpoints.ANNOUNCING]
    user = ["raise", *_KINDS[1:]]
    shown = [_stores([mine["R1", fault, store] for store in _MARKS], reasons) for fault in user]
    lines.append(f"| in user code (its task strikes its own process) | R1 | {' | '.join(shown)} |")
    lines.append("")
    lines += [f"{n}. {reason}" for n, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", *_rows(list(failpoints.named_moments()))])


def _stores(cells: Iterable[Cell], reasons: list[str]) -> str:
    shown = []
    for cell in cells:
        if cell.reason:
            if cell.reason not in reasons:
                reasons.append(cell.reason)
            shown.append(f"not meaningful ({reasons.index(cell.reason) + 1})")
        else:
            shown.append(_MARKS[cell.store])
    return ", ".join(dict.fromkeys(shown))


def _servers(cells: list[Cell], part: str, moments: Iterable[str]) -> str:
    mine = [cell for cell in cells if cell.part == part]
    lines = [
        f"## {part}\n",
        f"Each at each of these moments: {', '.join(moments)}.\n",
        "| fault | what must hold | how |",
        "|---|---|---|",
    ]
    for fault in dict.fromkeys(cell.fault for cell in mine):
        cell = next(cell for cell in mine if cell.fault == fault)
        lines.append(f"| {fault} | {cell.holds} | {cell.reason or 'played'} |")
    return "\n".join([*lines, ""])


def _list(part: str, cells: list[Cell]) -> str:
    return "\n".join([f"## {part}\n", *_rows(cells)])


def _rows(cells: list[Cell]) -> list[str]:
    lines = ["| moment | fault | store | what must hold | how |", "|---|---|---|---|---|"]
    for cell in cells:
        how = "played" if cell.scene else f"`{cell.test}`" if cell.test else cell.reason
        store = _MARKS.get(cell.store, cell.store)
        lines.append(f"| {cell.moment} | {cell.fault} | {store} | {cell.holds} | {how} |")
    return [*lines, ""]
