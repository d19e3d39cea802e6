"""`hf.queues` and `hf.workers`: depths, pausing, draining, weights, watermarks, options, purging; who is at work."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, overload

from holdfast.client.acts import Acts
from holdfast.client.filters import check_reason
from holdfast.client.operator import Operator
from holdfast.core.backpressure import AgeMarks, Watermarks
from holdfast.core.errors import InvalidOptions
from holdfast.core.names import check_name
from holdfast.core.priority import check_weights
from holdfast.core.queue import QueueInfo, QueueRates, QueueSettings
from holdfast.core.queue_options import OPTION_NAMES, check_options
from holdfast.core.shown import shown
from holdfast.core.unset import UNSET, Unset
from holdfast.core.worker import WorkerInfo
from holdfast.stores.base import Store

_BATCH = 500


class Queues:
    """Queues come into being with their first job; their settings are shared by all processes."""

    def __init__(self, operator: Operator, known: Callable[[], set[str]] = set) -> None:
        self._operator = operator
        self._store = operator.store
        self._acts = Acts(operator)
        self._known = known

    async def list(self) -> list[QueueInfo]:
        """Every queue that has, or has ever had, a job or a setting."""
        return await self._store.list_queues()

    async def known(self) -> set[str]:
        """The names of all queues that the store or this app has heard of, also where operators' routes lead."""
        routed = {rule.route.queue for rule in await self._store.routes() if not isinstance(rule.route.queue, Unset)}
        return self._known() | (await self._store.queue_settings()).keys() | routed

    async def rates(self) -> dict[str, QueueRates]:
        """How quickly jobs came, began and ended lately, by queue; one that is not there had none of them."""
        return await self._store.queue_rates()

    async def pause(self, queue: str, *, by: str = "") -> None:
        """Nothing more of this queue is started, in any process; running jobs go on.

        Also of one that has had no job yet: a pause may come before a deploy. `known()` tells a slip of the pen.

        `by` says who it was, here and below; it is the user of this process otherwise.
        """
        await self._change(queue, "paused", by, paused=True)

    async def resume(self, queue: str, *, by: str = "") -> None:
        """Start its jobs again, and accept new ones: it lifts `pause` and `drain`."""
        await self._change(queue, "resumed", by, paused=False, draining=False)

    async def drain(self, queue: str, *, by: str = "") -> None:
        """Accept nothing more: enqueues raise `QueueFull` at once, while what is there goes on."""
        await self._change(queue, "draining", by, draining=True)

    async def undrain(self, queue: str, *, by: str = "") -> None:
        """Accept again; a paused queue stays paused."""
        await self._change(queue, "accepting", by, draining=False)

    async def set_weights(
        self,
        queue: str,
        *,
        weight: float | None = None,
        priorities: Mapping[str, float] | None = None,
        by: str = "",
    ) -> None:
        """Share of this queue against others (`weight`), and of its priorities among themselves, by name.

        0 means only when nothing else is ready. What is left out stays as it is, also priorities that are not named;
        `clear_weights` goes back to what is built in. A queue that neither the store nor a worker nor this app has
        heard of is refused: the weight of a slip of the pen would do nothing, in silence.
        """
        changes: dict[str, object] = {}
        if weight is None and priorities is None:
            raise InvalidOptions("weights: none was given; give weight= or priorities=, or clear them")
        if weight is not None:
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= 1_000_000:
                raise InvalidOptions(
                    f"weight={shown(weight)}: needs a number from 0 (only when nothing else is ready) to 1,000,000"
                )
            changes["weight"] = float(weight)
        if priorities is not None:
            if not isinstance(priorities, Mapping):
                raise InvalidOptions(f"priorities={shown(priorities)}: needs a mapping from names to weights")
            if not priorities:
                raise InvalidOptions("priorities={}: names none; to go back to what is built in, clear the weights")
            check_weights(priorities)
            changes["weights"] = dict(priorities)
        await self._refuse_unknown(queue)
        said = [] if weight is None else [f"weight {weight:g}"]
        said += [f"{name}={share:g}" for name, share in (priorities or {}).items()]
        await self._change(queue, " ".join(said), by, **changes)

    async def clear_weights(self, queue: str, *, by: str = "") -> None:
        """The weight of the queue, and those of its priorities, as if they had never been set."""
        await self._refuse_unknown(queue)
        await self._change(queue, "weights as built in", by, weight=1.0, weights=None)

    @overload
    async def set_watermarks(self, queue: str, *, high: int, low: int, by: str = "") -> None: ...

    @overload
    async def set_watermarks(
        self, queue: str, *, high_age_s: float | None, low_age_s: float | None, by: str = ""
    ) -> None: ...

    @overload
    async def set_watermarks(
        self, queue: str, *, high: int, low: int, high_age_s: float | None, low_age_s: float | None, by: str = ""
    ) -> None: ...

    async def set_watermarks(
        self,
        queue: str,
        *,
        high: int | None = None,
        low: int | None = None,
        high_age_s: float | Unset | None = UNSET,
        low_age_s: float | Unset | None = UNSET,
        by: str = "",
    ) -> None:
        """At `high` jobs that are ready or parked the queue stops accepting, at `low` it accepts again.

        The same by how long the oldest of them has waited, in seconds, beside that or instead of it; both None: no such
        marks. What is left out stays as it is; `clear_watermarks` goes back to what is configured.
        """
        changes: dict[str, object] = {}
        if high is not None or low is not None:
            if high is None or low is None:
                raise InvalidOptions("watermarks: give both high= and low=")
            changes["watermarks"] = Watermarks(high, low)
        if high_age_s is not UNSET or low_age_s is not UNSET:
            changes["ages"] = _ages(high_age_s, low_age_s)
        if not changes:
            raise InvalidOptions("watermarks: none was given; give high= and low=, or high_age_s= and low_age_s=")
        await self._change(queue, "watermarks", by, **changes)

    async def clear_watermarks(self, queue: str, *, by: str = "") -> None:
        """Those that each process is configured with hold again, and none on age."""
        await self._change(queue, "watermarks as configured", by, watermarks=None, ages=None)

    async def set_options(
        self,
        queue: str,
        *,
        concurrency: int | Literal["none"] | Unset | None = UNSET,
        retry_budget: float | Literal["none"] | Unset | None = UNSET,
        bypass_priority: int | str | Unset | None = UNSET,
        by: str = "",
    ) -> None:
        """What processes do about a queue, instead of what they are configured with; workers take it up in a second.

        `concurrency`: jobs of it that one worker process runs at once. `retry_budget`: share of retries among its runs
        in one process. `bypass_priority`: from this priority on jobs are accepted although it is full. `"none"`: as
        many as there are slots, any share, nobody, also where processes are configured otherwise. What is left out
        stays as it is; None, and `clear_options`: what each process is configured with holds again.
        """
        said = {"concurrency": concurrency, "retry_budget": retry_budget, "bypass_priority": bypass_priority}
        said = {name: value for name, value in said.items() if value is not UNSET}
        if not said:
            raise InvalidOptions(
                "options: none was given; give concurrency=, retry_budget= or bypass_priority=, or clear them"
            )
        options = check_options(check_name("queue", queue), said)
        words = [f"{name} {value}" for name, value in options.said.items() if said.get(name) is not None]
        words += [f"{name} as configured" for name in said if said[name] is None]
        await self._set(queue, ", ".join(words), by, QueueSettings(options=options), only=tuple(said))

    async def clear_options(self, queue: str, *, by: str = "") -> None:
        """What each process is configured with holds again."""
        await self._refuse_unknown(queue)
        await self._set(queue, "options as configured", by, QueueSettings(), only=OPTION_NAMES)

    async def purge(self, queue: str, *, reason: str = "purged", by: str = "") -> int:
        """Cancel everything that waits in this queue; running jobs go on. Returns how many.

        It is on record, with how many waited, as the changes of settings are. A queue that nobody has heard of is
        refused, as for `set_weights`: 0 would be a false comfort.
        """
        reason = check_reason(reason) or "purged"
        await self._refuse_unknown(queue)
        if self._acts.wanted:
            count = sum([each.waiting for each in await self.list() if each.name == queue])
            await self._acts.record("purge", f"queue {queue}", by=by, reason=reason, count=count)
        total = 0
        while count := await self._store.purge_queue(queue, reason=reason, limit=_BATCH):
            total += count
        return total

    async def _change(self, queue: str, said: str, by: str, **changes: Any) -> None:
        await self._set(queue, said, by, QueueSettings(**changes), only=tuple(changes))

    async def _set(self, queue: str, said: str, by: str, settings: QueueSettings, *, only: tuple[str, ...]) -> None:
        check_name("queue", queue)
        who = self._operator.named(by)
        await self._store.set_queue(queue, settings, only=only, by=who)
        self._operator.tell("queue", queue, said, who)

    async def why_unknown(self, queue: str, *, among: Collection[str] | None = None) -> str | None:
        """That there is no such queue, and which it may have been, of these or of all; None: there is one."""
        check_name("queue", queue)
        known = await self.known()
        if queue in known:
            return None
        for worker in await self._store.list_workers():
            known |= {*worker.queues}
        if queue in known:
            return None
        near = difflib.get_close_matches(queue, known if among is None else known & {*among}, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return (
            f"there is no queue {queue!r}: none of its jobs was ever enqueued, no worker serves it by its name, no "
            f"operator's route leads there, and no task of this app is at home there{hint}"
        )

    async def _refuse_unknown(self, queue: str) -> None:
        if said := await self.why_unknown(queue):
            raise InvalidOptions(said)


def _ages(high_s: float | Unset | None, low_s: float | Unset | None) -> AgeMarks | None:
    if high_s is None and low_s is None:
        return None
    if isinstance(high_s, Unset) or isinstance(low_s, Unset) or high_s is None or low_s is None:
        raise InvalidOptions("watermarks: give both high_age_s= and low_age_s=, or both as None")
    return AgeMarks(high_s, low_s)


class Workers:
    """The workers that are registered now."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self) -> list[WorkerInfo]:
        """Every worker, with what it runs now. One that died stays until its lease has ended."""
        return await self._store.list_workers()
