"""What operators say about flow control, as rows and back, and in the words of the record of changes; what somebody
wrote into the store by hand and makes no sense counts as not set. The same in every store."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from holdfast.core.breaker import NO_FIGURES, BreakerFigures, BreakerState
from holdfast.core.gates import MOST_AT_ONCE, Rules
from holdfast.core.queue import QueueSettings
from holdfast.core.queue_options import OPTION_NAMES
from holdfast.core.rate import Pace
from holdfast.stores.flow import BreakerInfo

#: The kinds of rules, as in the column `what`.
LIMIT: Final = "limit"
PAUSED_TASK: Final = "task"
PAUSED_TENANT: Final = "tenant"
RULE_COLUMNS: Final = ("what", "name", "size", "count", "per_s", "burst")


def rules_of(rows: Iterable[tuple[Any, ...]]) -> Rules:
    """From rows in the order of `RULE_COLUMNS`; those of other kinds are passed over."""
    paused: dict[str, set[str]] = {PAUSED_TASK: set(), PAUSED_TENANT: set()}
    sizes: dict[str, int] = {}
    paces: dict[str, Pace] = {}
    for what, name, size, count, per_s, burst in rows:
        if not isinstance(name, str):
            continue
        if what in paused:
            paused[what].add(name)
        elif what == LIMIT:
            if isinstance(size, int) and 0 <= size <= MOST_AT_ONCE:
                sizes[name] = size
            if (pace := _pace(count, per_s, burst)) is not None:
                paces[name] = pace
    return Rules(frozenset(paused[PAUSED_TASK]), frozenset(paused[PAUSED_TENANT]), sizes, paces)


def _pace(count: Any, per_s: Any, burst: Any) -> Pace | None:
    try:
        pace = Pace(float(count), float(per_s), int(burst))
    except (TypeError, ValueError, OverflowError):
        return None
    return pace if pace.makes_sense else None


def changed_figures(said: BreakerFigures, now: BreakerFigures, only: Collection[str] | None) -> BreakerFigures:
    """What operators say of a breaker after a change: all that is said now, or of these names."""
    return now if only is None else said._replace(**{name: getattr(now, name) for name in only})


def breaker_info(name: str, state: BreakerState, figures: BreakerFigures, waiting: int, *, now: float) -> BreakerInfo:
    """A report on a breaker as a store has it."""
    said_by = "operator" if figures != NO_FIGURES else ""
    return BreakerInfo(name, state, state.phase(now), waiting, figures, said_by)


# ---------------------------------------------------------------- words of changes


def limit_words(size: int | None, pace: Pace | None) -> dict[str, Any] | None:
    """None where nothing is said about it."""
    words: dict[str, Any] = {} if size is None else {"size": size}
    if pace is not None:
        words |= {"rate": str(pace), "burst": pace.burst}
    return words or None


def queue_words(settings: QueueSettings) -> dict[str, Any]:
    """All of them, also those that were not changed."""
    return {
        "paused": settings.paused,
        "draining": settings.draining,
        "watermarks": settings.watermarks and [settings.watermarks.high, settings.watermarks.low],
        "ages": settings.ages and [settings.ages.high_s, settings.ages.low_s],
        "weight": settings.weight,
        "weights": settings.weights and dict(settings.weights),
        **{name: getattr(settings.options, name) for name in OPTION_NAMES},
    }


def breaker_words(state: BreakerState, now: float) -> dict[str, Any]:
    """Whether it lets anybody through, and whether that is an operator's word."""
    return {"phase": state.phase(now), "held": state.held}


def figure_words(figures: BreakerFigures) -> dict[str, Any] | None:
    """Those of which something is said; None where nothing is."""
    return {name: value for name, value in figures._asdict().items() if value is not None} or None


def tenant_words(weight: float | None) -> dict[str, Any] | None:
    """None where nothing is set."""
    return None if weight is None else {"weight": weight}


def pause_words(*, paused: bool) -> dict[str, Any]:
    """Of a task or a tenant."""
    return {"paused": paused}
