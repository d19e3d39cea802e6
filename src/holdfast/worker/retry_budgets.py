"""The retry budgets of one worker process: what is above a queue's share of retries is put off, and its error says so.

No state is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.core.retry_budget import RetryBudget
from holdfast.core.settlement import Retry, Settlement
from holdfast.runtime.clock import Clock
from holdfast.telemetry.events import QueueRetriesEased, QueueRetriesStretched
from holdfast.telemetry.hub import Telemetry


class RetryBudgets:
    """One per worker; sessions come and go under it."""

    def __init__(self, shares: Mapping[str, float], *, clock: Clock, telemetry: Telemetry) -> None:
        self._shares = shares
        self._budgets = {name: RetryBudget(share) for name, share in shares.items()}
        self._clock = clock
        self._telemetry = telemetry

    def applied(self, queue: str, settlement: Settlement | None) -> Settlement | None:
        """What is to be written after a run: a retry that the budget does not cover comes later."""
        budget = self._budgets.get(queue)
        if budget is None:
            return settlement
        now_s = self._clock.monotonic()
        if over := budget.ran(now_s):
            self._telemetry.emit(QueueRetriesEased(queue, over))
        if not isinstance(settlement, Retry):
            return settlement
        was_in_order = not budget.stretched
        delay_s = budget.delay_s(settlement.delay_s)
        if was_in_order and budget.stretched:
            self._telemetry.emit(QueueRetriesStretched(queue, round(100 * self._shares[queue])))
        put_off_s = delay_s - settlement.delay_s
        if not put_off_s:
            return settlement
        return replace(settlement, delay_s=delay_s, error=settlement.error.put_off_by(put_off_s))
