"""Tells running jobs that somebody asked to cancel them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.core.errors import StoreError
from holdfast.core.job import WorkerId
from holdfast.runtime.service import Service
from holdfast.stores.base import LeaseStore
from holdfast.worker.run import Interruption, Run

#: What has stopped waits no longer for an answer.
_STOP_WITHIN_S = 2.0


class CancelWatch(Service):
    """Looks on every hint of a cancellation, and every `poll_s` while anything runs."""

    def __init__(
        self,
        store: LeaseStore,
        worker: WorkerId,
        runs: Mapping[int, Run],
        *,
        poll_s: float,
        on_crash: Callable[[Service, BaseException], None],
    ) -> None:
        super().__init__(name="cancel-watch", stop_timeout_s=_STOP_WITHIN_S, on_crash=on_crash)
        self._store = store
        self._worker = worker
        self._runs = runs
        self._poll_s = poll_s

    async def run(self) -> None:
        while await self.pause(self._poll_s):
            if not self._runs:
                continue
            try:
                requests = await self._store.cancel_requests(self._worker)
            except StoreError:
                continue
            for request in requests:
                run = self._runs.get(request.token)
                if run is not None and run.interruption is None:
                    run.cancel_reason = request.reason
                    run.interrupt(Interruption.CANCEL)
