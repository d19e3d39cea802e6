"""The retry budgets of one worker process: what is above a queue's share of retries is put off, and its error says so.

No state is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.core.job import ClaimedJob, ErrorInfo
from holdfast.core.retry_budget import RetryBudget
from holdfast.core.settlement import Retry, Settlement, Snooze
from holdfast.runtime.clock import Clock
from holdfast.telemetry.events import QueueRetriesEased, QueueRetriesStretched
from holdfast.telemetry.hub import Telemetry


class RetryBudgets:
    """One per worker; sessions come and go under it."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry) -> None:
        self._budgets: dict[str, RetryBudget] = {}
        self._clock = clock
        self._telemetry = telemetry
        self.in_use = False
        """Whether any queue has one: nobody needs to ask otherwise."""

    def set_shares(self, shares: Mapping[str, float]) -> None:
        """Which queues have a budget from now on. One that had one keeps its balance; a new one begins with the free
        ones; where one is lifted, everything begins at once."""
        for queue in self._budgets.keys() - shares.keys():
            lifted = self._budgets.pop(queue)
            if lifted.stretched:
                self._telemetry.emit(QueueRetriesEased(queue, lifted.stretched))
        for queue, share in shares.items():
            budget = self._budgets.get(queue)
            if budget is None:
                self._budgets[queue] = RetryBudget(share)
            else:
                budget.share = share
        self.in_use = bool(self._budgets)

    def put_off(self, job: ClaimedJob) -> Snooze | None:
        """What is to be written instead of a run that the budget does not cover; None: it may begin, and is counted.

        Whether a run is a retry is told by its number alone: any process may have claimed it, and that is all it knows.
        """
        budget = self._budgets.get(job.queue)
        if budget is None:
            return None
        now_s, before = self._clock.monotonic(), budget.stretched
        wait_s = budget.begin(now_s, again=job.attempt > 1)
        self._tell(job.queue, budget, before, now_s)
        if not wait_s:
            return None
        why = f"the retry budget of queue {job.queue} did not cover it yet, it was not started"
        return Snooze(job.id, job.token, wait_s, ErrorInfo("", why).put_off_by(wait_s))

    def applied(self, queue: str, settlement: Settlement | None) -> Settlement | None:
        """What is to be written after a run: while others wait for the budget, a retry comes after them."""
        budget = self._budgets.get(queue)
        if budget is None or not isinstance(settlement, Retry):
            return settlement
        now_s, before = self._clock.monotonic(), budget.stretched
        delay_s = budget.delay_s(now_s, settlement.delay_s)
        self._tell(queue, budget, before, now_s)
        put_off_s = delay_s - settlement.delay_s
        if not put_off_s:
            return settlement
        return replace(settlement, delay_s=delay_s, error=settlement.error.put_off_by(put_off_s))

    def _tell(self, queue: str, budget: RetryBudget, before: int, now_s: float) -> None:
        """That it is used up, or no longer so."""
        if not before and budget.stretched:
            self._telemetry.emit(QueueRetriesStretched(queue, round(100 * budget.share)))
        elif over := budget.eased(now_s):
            self._telemetry.emit(QueueRetriesEased(queue, over))
