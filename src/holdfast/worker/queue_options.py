"""What holds for single queues in this worker while it runs: what operators say goes before how it is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from holdfast.core.queue import QueueSettings
from holdfast.core.queue_options import NO_QUEUE_OPTIONS, QueueOptions
from holdfast.worker.retry_budgets import RetryBudgets
from holdfast.worker.slots import Slots


class OptionsInForce:
    """One per session. It is told what the store has, before anything begins and then about every second; it acts when
    that has changed."""

    def __init__(
        self,
        configured: Mapping[str, QueueOptions],
        *,
        slots: Slots,
        budgets: RetryBudgets,
        running: Callable[[], Iterable[str]],
    ) -> None:
        """`running`: the queue of each job that has a slot now."""
        self._configured = configured
        self._slots = slots
        self._budgets = budgets
        self._running = running
        self._said: dict[str, QueueOptions] | None = None

    def follow(self, settings: Mapping[str, QueueSettings]) -> None:
        """What operators say now, of all queues."""
        said = {name: each.options for name, each in settings.items() if each.options != NO_QUEUE_OPTIONS}
        if said != self._said:
            self._said = said
            over = {name: each.over(self._configured.get(name, NO_QUEUE_OPTIONS)) for name, each in said.items()}
            self._apply({**self._configured, **over})

    def _apply(self, options: Mapping[str, QueueOptions]) -> None:
        caps = {name: each.bound for name, each in options.items() if each.bound is not None}
        if caps != self._slots.caps:
            self._slots.set_caps(caps, self._running())
        self._budgets.set_shares({name: each.budget for name, each in options.items() if each.budget is not None})
