"""What processes do about single queues: as each is configured, and as operators say for all (`queue`)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name
from holdfast.core.priority import parse_priority
from holdfast.core.shown import shown

_MOST: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The settings of one queue, as in `[queue.mail]`."""

    concurrency: int | None = None
    """Jobs of this queue that one worker process runs at once; None: as many as it has slots."""
    retry_budget: float | None = None
    """Share of retries among the runs of this queue in one process above which they wait longer; None: any."""
    bypass_priority: int | str | None = None
    """Jobs of this priority and above are accepted although the queue is full; None: no job is."""

    def __post_init__(self) -> None:
        most, share = self.concurrency, self.retry_budget
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST):
            raise InvalidOptions(
                f"concurrency = {shown(most)} is not a whole number from 1 to {_MOST:,}; to start nothing of a queue, "
                "pause it"
            )
        if share is not None and (isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1):
            raise InvalidOptions(f"retry_budget = {shown(share)} is not a share above 0 and below 1, as 0.2")
        if self.bypass_priority is not None:
            object.__setattr__(self, "bypass_priority", parse_priority(self.bypass_priority))

    @property
    def given(self) -> dict[str, Any]:
        """Those of which something is said."""
        return {name: value for name in OPTION_NAMES if (value := getattr(self, name)) is not None}

    def over(self, other: QueueOptions) -> QueueOptions:
        """These, and where they say nothing those."""
        return replace(other, **self.given)


OPTION_NAMES: Final = tuple(field.name for field in fields(QueueOptions))
NO_QUEUE_OPTIONS: Final = QueueOptions()


def check_options(queue: str, said: Mapping[str, Any]) -> QueueOptions:
    """Options of this queue by their names; the sentence that refuses them names it."""
    try:
        return QueueOptions(**said)
    except InvalidOptions as error:
        raise InvalidOptions(f"queue {queue!r}: {error}") from None


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
