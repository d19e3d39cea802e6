"""Limits, rates and breakers of one name are one and the same: two tasks that say different things of it contradict
each other, and what held for whom would be decided by which job comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.core.errors import InvalidOptions
from holdfast.core.options import TaskOptions


class _Said(NamedTuple):
    what: str
    name: str
    figures: object
    words: str


def check_namesakes(task: str, options: TaskOptions, others: Iterable[tuple[str, TaskOptions]]) -> None:
    """InvalidOptions names both tasks. Which keys a limit has, and which errors count, is for each task to say."""
    if not options.flows:
        return
    known: dict[tuple[str, str], tuple[str, _Said]] = {}
    for other, said_by_it in others:
        for said in _said(other, said_by_it):
            known.setdefault((said.what, said.name), (other, said))
    for said in _said(task, options):
        other, before = known.setdefault((said.what, said.name), (task, said))
        if before.figures != said.figures:
            raise InvalidOptions(
                f"{said.what} {said.name!r}: task {other} says {before.words}, task {task} says {said.words}; one name "
                "is one for all of them: say the same, or give one of them another name="
            )


def _said(task: str, options: TaskOptions) -> Iterator[_Said]:
    for limit in options.limits:
        figures = (limit.size, limit.when_full)
        yield _Said(
            "limit", limit.name or f"task:{task}", figures, f"{limit.size} at once, when full {limit.when_full}"
        )
    for rate in options.rates:
        yield _Said("rate", rate.name or f"task:{task}", rate.parsed, f"{rate.parsed} (burst {rate.parsed.burst})")
    if options.breaker is not None:
        gate = options.breaker.gate
        words = (
            f"{gate.failures} failure{'s' * (gate.failures > 1)} in {gate.window_s:g} s, open for {gate.open_for_s:g} s"
        )
        yield _Said("breaker", gate.name, gate, words)
