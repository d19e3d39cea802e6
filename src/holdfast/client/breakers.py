"""`hf.breakers`: which circuit breakers there are and whether they let anybody through; open, close and tune them."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.operator import Operator
from holdfast.core.breaker import CLOSED, NO_FIGURES, BreakerFigures, BreakerGate, Phase
from holdfast.core.durations import Seconds
from holdfast.core.errors import InvalidOptions
from holdfast.core.limit_options import Breaker
from holdfast.core.names import check_name
from holdfast.core.task import Registry
from holdfast.core.unset import UNSET, Unset
from holdfast.stores.flow import BreakerInfo

_FIGURES: Final = {"failures": "failures", "window": "window_s", "open_for": "open_for_s"}


class Breakers:
    """A breaker is shared by all processes; it comes into being with its first failure."""

    def __init__(self, operator: Operator, registry: Registry) -> None:
        self._operator = operator
        self._store = operator.store
        self._registry = registry

    async def list(self) -> list[BreakerInfo]:
        """Those that have failed, that somebody has touched, or that tasks of this app declare; by name."""
        found = {each.name: each for each in await self._store.breakers()}
        for name, gate in self._gates().items():
            info = found.get(name) or BreakerInfo(name, CLOSED, Phase.CLOSED, 0)
            figures = BreakerFigures(*info.figures.over(gate)[1:])
            found[name] = info._replace(figures=figures, said_by=info.said_by or "code")
        return [found[name] for name in sorted(found)]

    def declared(self) -> set[str]:
        """Those of tasks of this app."""
        return {*self._gates()}

    def _gates(self) -> dict[str, BreakerGate]:
        """As they are declared: of one name all say the same."""
        breakers = (task.options.breaker for task in self._registry)
        return {each.name: each.gate for each in breakers if each is not None}

    async def set(
        self,
        name: str,
        *,
        failures: int | Unset | None = UNSET,
        window: Seconds | Unset | None = UNSET,
        open_for: Seconds | Unset | None = UNSET,
        by: str = "",
    ) -> BreakerFigures:
        """Other figures for a breaker, in all processes: they go before what the code says, from the next run on.

        They mean what they mean in `Breaker(…)`. What is left out stays as it is; None, and `clear`: what the code says
        holds again. Any name is accepted, also of a breaker that has not failed yet. Answers with the figures in force
        from now on, as far as they are known here.

        `by` says who it was, here and below; it is the user of this process otherwise.
        """
        check_name("breaker", name)
        given = {"failures": failures, "window": window, "open_for": open_for}
        said = {option: value for option, value in given.items() if value is not UNSET}
        if not said:
            raise InvalidOptions(
                f"breaker {name!r}: nothing was given; give failures=, window= or open_for=, or clear it"
            )
        figures = _checked(name, {option: value for option, value in said.items() if value is not None})
        who = self._operator.named(by)
        only = [_FIGURES[option] for option in said]
        now = await self._store.set_breaker_figures(name, figures, by=who, only=only)
        self._operator.tell("breaker", name, _in_words(now), who)
        gate = self._gates().get(name)
        return now if gate is None else BreakerFigures(*now.over(gate)[1:])

    async def clear(self, name: str, *, by: str = "") -> bool:
        """What the code says of its figures holds again; False: nothing was set."""
        check_name("breaker", name)
        who = self._operator.named(by)
        was_set = any(each.name == name and each.said_by for each in await self._store.breakers())
        await self._store.set_breaker_figures(name, NO_FIGURES, by=who)  # also where what is there counts as not set
        if was_set:
            self._operator.tell("breaker", name, _in_words(NO_FIGURES), who)
        return was_set

    async def open(self, name: str, *, by: str = "") -> None:
        """Start nothing more that passes it, until somebody closes it; what runs goes on.

        Any name is accepted, also of a breaker that has not failed yet.
        """
        await self._set(name, closed=False, said="held open", by=by)

    async def close(self, name: str, *, by: str = "") -> None:
        """Let everybody through, as if it had never failed."""
        await self._set(name, closed=True, said="closed", by=by)

    async def _set(self, name: str, *, closed: bool, said: str, by: str) -> None:
        check_name("breaker", name)
        who = self._operator.named(by)
        await self._store.set_breaker(name, closed=closed, by=who)
        self._operator.tell("breaker", name, said, who)


def _checked(name: str, given: dict[str, Any]) -> BreakerFigures:
    """By the rules of `Breaker`, of what is given only."""
    gate = Breaker(name, **given).gate
    return BreakerFigures(**{_FIGURES[option]: getattr(gate, _FIGURES[option]) for option in given})


def _in_words(figures: BreakerFigures) -> str:
    said = [
        f"{option} {value:g}" for option, field in _FIGURES.items() if (value := getattr(figures, field)) is not None
    ]
    return ", ".join(said) or "as the code says"
