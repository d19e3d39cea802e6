"""What somebody does to jobs as an operator (purge, move, replay, …), put on record beside the changes of settings."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

from holdfast.client.operator import Operator

_BY_CALLER: ContextVar[bool] = ContextVar("holdfast_acts_recorded_by_caller", default=False)
MOST_COUNTED: Final = 100_000
_MOST_NAMED: Final = 100


@contextlib.contextmanager
def recorded_by_caller() -> Iterator[None]:
    """For servers and commands, which put on record themselves what they do, in the words of whoever asked them."""
    token = _BY_CALLER.set(True)
    try:
        yield
    finally:
        _BY_CALLER.reset(token)


class Acts:
    """Before they are done: nothing is done that is not on record."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    @property
    def wanted(self) -> bool:
        """Whether anything that is told here goes on record."""
        return not _BY_CALLER.get()

    async def record(self, what: str, name: str, *, by: str, **said: Any) -> None:
        """What was not said is left out."""
        who = self._operator.named(by)
        if self.wanted:
            words = {key: value for key, value in said.items() if value not in (None, "", {}, [])}
            await self._operator.store.record_act(by=who, what=what, name=name, said=words)


def filter_words(filters: Mapping[str, Any]) -> dict[str, str]:
    """Filters as the record says them; words of errors, which may hold arguments, are left out."""
    return {name: "…" if name == "text" else str(value) for name, value in filters.items() if value is not None}


def id_words(job_ids: Collection[object]) -> list[str]:
    """The first of very many: how many there are is said beside them."""
    return [str(each) for each, _ in zip(job_ids, range(_MOST_NAMED), strict=False)]


def count_words(count: int) -> int | str:
    """How many there are, as they are counted before it is done."""
    return count if count < MOST_COUNTED else f"{MOST_COUNTED}+"
