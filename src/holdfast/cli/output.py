"""Where all output goes: tables on a terminal, tab-separated lines in a pipe, JSON when asked. Decides nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from rich.console import Console
from rich.table import Table
from rich.text import Text

T = TypeVar("T")

_WIDEST = 60
_GAP = 2
_SHORT = 16
_NARROW = 60
_STYLES = {
    "succeeded": "green", "ok": "green", "dead": "red", "fail": "bold red", "running": "cyan", "warn": "yellow",
    "cancelled": "dim", "paused": "yellow", "full": "red", "parked": "yellow",
    "draining": "yellow", "open": "", "half_open": "yellow",
}  # fmt: skip


class Column(NamedTuple, Generic[T]):
    """One column of a list."""

    title: str
    value: Callable[[T], object]
    rank: int = 0
    """Where the terminal is too narrow for all columns, the one with the highest rank is left out first; never one with
    rank 0."""
    room: int = _SHORT
    """As the last column it may be cut short; what has a higher rank is left out for its sake until it has so much."""


class Output:
    """The output of one command."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.terminal = sys.stdout.isatty() and not as_json

    def items(self, items: Sequence[T], columns: Sequence[Column[T]], fields: Callable[[T], Any], *, none: str) -> None:
        """A list: a table, lines without a heading, or one JSON document per line; `none` says that it is empty."""
        if self.as_json:
            for item in items:
                self.document(fields(item), indent=None)
        elif not self.terminal:
            for item in items:
                self.line(*(column.value(item) for column in columns))
        elif items:
            self._table(items, columns)
        else:
            self.note(none)

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing with many fields: a name and a value per line, or one JSON document."""
        if self.as_json:
            self.document(fields)
        elif not self.terminal:
            for name, value in fields.items():
                self.line(name, value)
        else:
            console = Console()
            if console.width < _NARROW:  # a grid would break ids, which people copy: the terminal wraps lines better
                for name, value in fields.items():
                    console.print(Text(f"{name}: ", "bold"), Text(_text(name, value)), sep="", soft_wrap=True)
                return
            grid = Table.grid(padding=(0, 2))
            grid.add_column(style="bold", no_wrap=True)
            grid.add_column(overflow="fold")
            for name, value in fields.items():
                text = _text(name, value)
                grid.add_row(name, Text(text, style=_STYLES.get(text, "")))
            console.print(grid)

    def done(self, sentence: str, fields: Mapping[str, Any], *, plain: Sequence[object] | None = None) -> None:
        """What a command did: a sentence, or JSON; `plain` is the line for a pipe where the sentence is not it."""
        if self.as_json:
            self.document(fields)
        elif self.terminal or plain is None:
            self.line(sentence)
        else:
            self.line(*plain)

    def document(self, value: Any, *, indent: int | None = 2) -> None:
        """JSON; on a line of its own where it is not indented."""
        indent = indent if sys.stdout.isatty() else None
        self._write(json.dumps(value, default=_plain, ensure_ascii=False, indent=indent) + "\n")

    def script(self, text: str) -> None:
        """SQL as it is to be run, line by line; none where there is none."""
        if self.as_json:
            self.document({"sql": text})
        else:
            self._write(text)

    def line(self, *values: object) -> None:
        """One line, its values separated by tabs."""
        self._write("\t".join(shown(value) for value in values) + "\n")

    def note(self, sentence: str) -> None:
        """Something for a person to read, beside the output."""
        sys.stderr.write(printable(sentence) + "\n")
        sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()  # a reader that has gone is noticed here, and one that follows sees every line at once

    def _table(self, items: Sequence[T], columns: Sequence[Column[T]]) -> None:
        console = Console()
        rows = [[shown(column.value(item)) for column in columns] for item in items]
        widths = [max(len(column.title), max(len(row[place]) for row in rows)) for place, column in enumerate(columns)]
        widths[:-1] = [min(_WIDEST, width) for width in widths[:-1]]  # the last may have all that is left
        kept = _fitting(columns, widths, console.width)
        # The last may be cut short; what else cannot be left out stays whole, ids above all: then lines are wrapped.
        rest = console.width - sum(widths[place] + _GAP for place in kept[:-1])
        widths[kept[-1]] = min(widths[kept[-1]], max(rest, _SHORT))
        total = sum(widths[place] + _GAP for place in kept) - _GAP
        console = Console(width=max(console.width, total))
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for place in kept:
            width = widths[place]
            table.add_column(columns[place].title, no_wrap=True, overflow="ellipsis", min_width=width, max_width=width)
        for row in rows:
            table.add_row(*(Text(row[place], style=_STYLES.get(row[place], "")) for place in kept))
        console.print(table)


def _fitting(columns: Sequence[Column[T]], widths: Sequence[int], width: int) -> list[int]:
    """The places of the columns that fit, the last of them perhaps cut short."""
    kept = list(range(len(columns)))
    for place in sorted(kept, key=lambda each: columns[each].rank, reverse=True):
        last = kept[-1]
        least = _SHORT if place == last else columns[last].room
        if sum(widths[each] + _GAP for each in kept if each != last) + min(widths[last], least) <= width:
            break
        if columns[place].rank:
            kept.remove(place)
    return kept


def shown(value: object) -> str:
    """A value as one field of one line: whatever a task wrote, it forges neither a field, a line nor a colour."""
    match value:
        case None:
            return "-"
        case str():
            return printable(value)
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case int() | UUID():
            return str(value)
        case float():
            return f"{value:g}"
        case _:
            return printable(json.dumps(value, default=_plain, ensure_ascii=False))


def printable(text: str) -> str:
    """The text with everything that could move a cursor or a field written as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def age(moment: datetime | None) -> str:
    """How long ago, in the largest unit that fits; with a minus for what is to come."""
    if moment is None:
        return "-"
    passed_s = (datetime.now(UTC) - moment).total_seconds()
    sign, left = ("-" if passed_s < 0 else ""), abs(passed_s)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if left >= 2 * size:
            return f"{sign}{left / size:.0f}{unit}"
    return f"{sign}{left:.0f}s"


def close_quietly() -> None:
    """Nobody reads any more: what is left in the buffer goes nowhere, without complaint at the exit."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # os.devnull is a name, not a path
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _text(name: str, value: object) -> str:
    """A traceback keeps its lines; everything else is shown as it would be in a pipe."""
    if name != "traceback":
        return shown(value)
    return "\n".join(printable(line) for line in str(value).splitlines())


def _plain(value: object) -> Any:
    """What JSON has no type for."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Iterable() if not isinstance(value, str):
            return list(value)
        case _:
            return str(value)
