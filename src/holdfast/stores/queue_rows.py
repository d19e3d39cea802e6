"""Settings of queues as rows and back; what somebody wrote into the store by hand and makes no sense counts as not
set. The same in every store."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from holdfast.core.backpressure import AgeMarks, Watermarks
from holdfast.core.errors import InvalidOptions
from holdfast.core.priority import LARGEST_WEIGHT, PRIORITIES, PRIORITY_NAMES, check_weights
from holdfast.core.queue import QueueRates, QueueSettings, share_of
from holdfast.core.queue_options import OPTION_NAMES, QueueOptions

_LEAST_S = 1.0
COLUMNS = ("paused", "high", "low", "weight", "weights", "high_age_s", "low_age_s", "draining", *OPTION_NAMES)


def to_row(settings: QueueSettings) -> tuple[Any, ...]:
    """In the order of `COLUMNS`."""
    marks = settings.watermarks
    high, low = (marks.high, marks.low) if marks else (None, None)
    weights = None if settings.weights is None else json.dumps(dict(settings.weights))
    high_age_s, low_age_s = (settings.ages.high_s, settings.ages.low_s) if settings.ages else (None, None)
    options = (getattr(settings.options, name) for name in OPTION_NAMES)
    return settings.paused, high, low, settings.weight, weights, high_age_s, low_age_s, settings.draining, *options


def from_row(
    paused: Any,
    high: Any,
    low: Any,
    weight: Any,
    weights: Any,
    high_age_s: Any = None,
    low_age_s: Any = None,
    draining: Any = False,
    *options: Any,
) -> QueueSettings:
    """Settings as stored."""
    marks = by_priority = ages = None
    with contextlib.suppress(InvalidOptions, TypeError):
        ages = None if high_age_s is None else AgeMarks(high_age_s, low_age_s)
    with contextlib.suppress(InvalidOptions, TypeError):
        marks = None if high is None else Watermarks(high, low)
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        found = None if weights is None else dict(json.loads(weights))
        by_priority = found and check_weights(found) and found
    valid = isinstance(weight, int | float) and 0 <= weight <= LARGEST_WEIGHT
    written = {name: value for name, value in zip(OPTION_NAMES, options, strict=False) if value is not None}
    sensible = {name: value for name, value in written.items() if _is_option(name, value)}
    nonsense = {
        "watermarks": high is not None and marks is None,
        "ages": high_age_s is not None and ages is None,
        "weight": not valid,
        "weights": weights is not None and by_priority is None,
        **{name: name not in sensible for name in written},
    }
    return QueueSettings(
        paused=bool(paused),
        watermarks=marks,
        weight=float(weight) if valid else 1.0,
        weights=by_priority,
        ages=ages,
        draining=bool(draining),
        options=QueueOptions(**sensible),
        ignored=tuple(name for name, is_so in nonsense.items() if is_so),
    )


def _is_option(name: str, value: Any) -> bool:
    try:
        QueueOptions(**{name: value})
    except (InvalidOptions, TypeError):
        return False
    return True


def changed(settings: QueueSettings, said: QueueSettings, only: Collection[str] | None) -> QueueSettings:
    """What holds after a change: all that is said, or only the fields, and the options, of these names; of the weights
    of priorities those that are named, the others stay."""
    if only is None:
        return said
    fields = {name: getattr(said, name) for name in only if name not in OPTION_NAMES}
    if options := {name: getattr(said.options, name) for name in only if name in OPTION_NAMES}:
        fields["options"] = replace(settings.options, **options)
    if fields.get("weights"):
        fields["weights"] = check_weights({**(settings.weights or {}), **fields["weights"]})
    return replace(settings, **fields)


def rates_of(enqueued: int, started: int, ended: int, *, over_s: float) -> QueueRates:
    """Counts of a time as rates; a burst that is hardly over is as if it had taken a second."""
    over_s = max(_LEAST_S, over_s)
    return QueueRates(enqueued / over_s, started / over_s, ended / over_s, over_s)


def share_in_line(settings: QueueSettings, priority: object) -> float:
    """The weight of a lane of which somebody waits at a gate."""
    if not isinstance(priority, int) or priority not in PRIORITIES:
        priority = PRIORITY_NAMES["normal"]
    return share_of(settings, priority)
