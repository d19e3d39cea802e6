"""What processes do about single queues: as each is configured, and as operators say for all (`queue`).

Nothing said and `none` are two things: where nothing is said, the next level says it; `none` says that there is no
bound, no budget, no way past, also where the next level has one. It is kept as a value beyond all that bound anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name
from holdfast.core.priority import HIGHEST, parse_priority
from holdfast.core.shown import shown

NONE: Final = "none"
"""As it is said and shown."""
_MOST: Final = 10_000  # slots that a worker process can have: a bound of so many bounds nothing
_KEPT: Final[Mapping[str, Any]] = {"concurrency": _MOST, "retry_budget": 1.0, "bypass_priority": HIGHEST + 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The settings of one queue, as in `[queue.mail]`; None: nothing is said of it here.

    It takes what is kept of them; what people say is for `check_options`.
    """

    concurrency: int | None = None
    """Jobs of this queue that one worker process runs at once; 10,000: as many as it has slots."""
    retry_budget: float | None = None
    """Share of retries among the runs of this queue in one process above which they wait longer; 1.0: any."""
    bypass_priority: int | str | None = None
    """Jobs of this priority and above are accepted although the queue is full; 10: no job is."""

    def __post_init__(self) -> None:
        most, share = self.concurrency, self.retry_budget
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST):
            raise InvalidOptions(
                f"concurrency = {shown(most)} is not a whole number from 1 to {_MOST:,}; to start nothing of a queue, "
                "pause it; for no bound say 'none'"
            )
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1):
            raise _no_share(share)
        if self.bypass_priority is not None and not _is_kept("bypass_priority", self.bypass_priority):
            object.__setattr__(self, "bypass_priority", parse_priority(self.bypass_priority))

    @property
    def bound(self) -> int | None:
        """Jobs of this queue that one worker process runs at once; None: no bound of the queue is in force."""
        return None if self.concurrency == _KEPT["concurrency"] else self.concurrency

    @property
    def budget(self) -> float | None:
        """The share of retries; None: no budget is in force."""
        return None if self.retry_budget == _KEPT["retry_budget"] else self.retry_budget

    @property
    def given(self) -> dict[str, Any]:
        """Those of which something is said."""
        return {name: value for name in OPTION_NAMES if (value := getattr(self, name)) is not None}

    @property
    def said(self) -> dict[str, Any]:
        """All of them as people and programs are told: a value, `none`, or None where nothing is said."""
        return told({name: getattr(self, name) for name in OPTION_NAMES})

    def over(self, other: QueueOptions) -> QueueOptions:
        """These, and where they say nothing those."""
        return replace(other, **self.given)


OPTION_NAMES: Final = tuple(field.name for field in fields(QueueOptions))
NO_QUEUE_OPTIONS: Final = QueueOptions()


def check_options(queue: str, said: Mapping[str, Any]) -> QueueOptions:
    """Options of this queue by their names, as somebody says them; the sentence that refuses them names it."""
    try:
        return QueueOptions(**{name: _heard(name, value) for name, value in said.items()})
    except InvalidOptions as error:
        raise InvalidOptions(f"queue {queue!r}: {error}") from None


def told(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their names as people and programs are told them, among whatever else is there."""
    return {name: NONE if name in _KEPT and _is_kept(name, value) else value for name, value in kept.items()}


def _heard(name: str, value: Any) -> Any:
    """As it is kept. What stands for `none` there is nothing that anybody says: a slip would open or close a door."""
    if isinstance(value, str) and value == NONE:
        return _KEPT[name]
    if name == "retry_budget" and _is_kept(name, value):
        raise _no_share(value)
    return parse_priority(value) if name == "bypass_priority" and value is not None else value


def _is_kept(name: str, value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == _KEPT[name]


def _no_share(value: object) -> InvalidOptions:
    return InvalidOptions(
        f"retry_budget = {shown(value)} is not a share above 0 and below 1, as 0.2; for no budget say 'none'"
    )


def parse_queue_options(table: object) -> dict[str, QueueOptions]:
    """The options of queues by their names, from a table of tables."""
    if not isinstance(table, Mapping):
        raise InvalidOptions(
            f"{table!r:.80} is not a table of queues with their settings (which queues a worker serves is the setting "
            "queues)"
        )
    return {check_name("queue", name): _options(name, said) for name, said in table.items()}


def _options(queue: str, said: Any) -> QueueOptions:
    if not isinstance(said, Mapping):
        raise InvalidOptions(f"queue {queue!r}: {said!r:.80} is not a table of settings, as {{ concurrency = 5 }}")
    for name in said:
        if name == "prefetch":
            raise InvalidOptions(
                f"queue {queue!r}: there is no prefetch to set: a worker claims no more jobs than it has free slots"
            )
        if name not in OPTION_NAMES:
            near = difflib.get_close_matches(str(name), OPTION_NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(OPTION_NAMES)}"
            raise InvalidOptions(f"queue {queue!r}: there is no setting {name}: {hint}")
    return check_options(queue, said)
