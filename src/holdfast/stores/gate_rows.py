"""What a store keeps of gates, breakers and tenants, from its rows; what somebody wrote into the store by hand and
makes no sense counts as not there. The same in every store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from holdfast.core.breaker import MOST_FAILURES, SHORTEST_S, BreakerFigures, BreakerState
from holdfast.core.durations import LONGEST_S
from holdfast.core.gates import Barrier, Place
from holdfast.core.tenancy import HEAVIEST, LIGHTEST

FIRST_S: Final = -60_000_000_000.0
LAST_S: Final = 250_000_000_000.0
"""Moments that Python and every store can write down lie between these, in epoch seconds: years 69 to 9892."""

_KINDS: Final = {barrier.value: barrier for barrier in Barrier}


def seconds_of(moment: Any) -> float | None:
    """A stored moment in epoch seconds; None where it is none."""
    if isinstance(moment, datetime):
        moment = moment.timestamp()
    return float(moment) if _is_number(moment) and FIRST_S <= moment <= LAST_S else None


def breaker_of(recent: Any, open_until: Any, held: Any) -> BreakerState:
    """From the columns of a row; the moments of failures as JSON, or as the numbers themselves."""
    return BreakerState(_moments(recent), seconds_of(open_until), held in (True, 1))


def figures_of(failures: Any, window_s: Any, open_for_s: Any) -> BreakerFigures:
    """As an operator could have said them, each by itself."""
    if type(failures) is not int or not 1 <= failures <= MOST_FAILURES:
        failures = None
    return BreakerFigures(failures, _span(window_s), _span(open_for_s))


def _span(value: Any) -> float | None:
    return float(value) if _is_number(value) and SHORTEST_S <= value <= LONGEST_S else None


def tenant_weight_of(weight: Any) -> float | None:
    """As an operator could have set it."""
    return float(weight) if _is_number(weight) and LIGHTEST <= weight <= HEAVIEST else None


def places_of_rows(rows: Iterable[Any]) -> list[Place]:
    """From (kind, key); kinds that this program does not know are passed over."""
    return [Place(_KINDS[kind], key) for kind, key in rows if kind in _KINDS and isinstance(key, str)]


def _moments(recent: Any) -> tuple[float, ...]:
    if isinstance(recent, str | bytes):
        try:
            recent = json.loads(recent)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(recent, list | tuple) or None in (found := [seconds_of(at) for at in recent]):
        return ()
    return tuple(at for at in found if at is not None)[-MOST_FAILURES:]


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))
