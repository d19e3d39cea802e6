"""The queues in the demonstration's picture: their depths, and their lanes as coloured bars."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from holdfast.cli.output import printable
from holdfast.core.priority import PRIORITY_NAMES, name_of
from holdfast.core.queue import QueueInfo

_STYLES = {"critical": "red", "high": "yellow", "normal": "green", "low": "cyan", "bulk": "blue"}
_BAR = 20
#: Ready jobs that fill a bar, unless some queue has more: otherwise two waiting jobs would look like a jam.
_DEEP = 80


def queues_table(queues: Sequence[QueueInfo], *, narrow: bool) -> Table:
    """One line per queue, below one with the heads."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", min_width=8)
    for _ in range(4):
        table.add_column(no_wrap=True, justify="right")
    heads = ["", "ready", "running", "later", "dead"]
    if not narrow:
        table.add_column(no_wrap=True, width=_BAR)
        heads.append("waiting, by priority")
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_row(*(Text(head, style="dim") for head in heads))
    deepest = max([_DEEP, *(queue.ready for queue in queues)])
    for queue in queues:
        lanes = {} if narrow else _lanes(queue)
        table.add_row(
            printable(queue.name),
            _number(queue.ready, "bold"),
            _number(queue.running, "cyan"),
            _number(queue.scheduled, ""),
            _number(queue.dead, "red"),
            *([] if narrow else [_bar(lanes, deepest), _legend(lanes)]),
        )
    return table


def _number(count: int, style: str) -> Text:
    return Text(f"{count:,}", style=style if count else "dim")


def _lanes(queue: QueueInfo) -> dict[str, int]:
    """Ready jobs by the name of their priority, the most urgent first."""
    counts = dict.fromkeys(PRIORITY_NAMES, 0)
    for priority, count in queue.by_priority.items():
        counts[name_of(priority)] += count
    return {name: count for name, count in counts.items() if count}


def _bar(lanes: dict[str, int], deepest: int) -> Text:
    bar = Text()
    for name, count in lanes.items():
        bar.append("█" * max(1, round(count / deepest * _BAR)), style=_STYLES[name])
    bar.truncate(_BAR)
    return bar


def _legend(lanes: dict[str, int]) -> Text:
    return Text("  ").join(Text(f"{name} {count:,}", style=_STYLES[name]) for name, count in lanes.items())
