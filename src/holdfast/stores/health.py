"""One report when the store goes away and one when it is back, however many callers notice; and how long to wait."""

from __future__ import annotations

from holdfast.runtime.backoff import Backoff
from holdfast.runtime.clock import Clock
from holdfast.telemetry.events import StoreDown, StoreUp
from holdfast.telemetry.hub import Telemetry


class StoreHealth:
    """Shared by everything in a process that talks to the store."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self._backoff = Backoff(0.05, 2.0)
        self._down_since: float | None = None

    @property
    def is_down(self) -> bool:
        return self._down_since is not None

    def failed(self, error: BaseException) -> float:
        """Note a failure; returns how long to wait before trying again."""
        if self._down_since is None:
            self._down_since = self._clock.monotonic()
            self._telemetry.emit(StoreDown(str(error) or "no answer in time"))
        return self._backoff.next()

    def worked(self) -> None:
        """Note a success."""
        if self._down_since is not None:
            self._telemetry.emit(StoreUp(self._clock.monotonic() - self._down_since))
            self._down_since = None
            self._backoff.reset()
