"""What a producer hears when the store's answer does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.client.enqueuer import Enqueuer
from holdfast.config import Config
from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.core.job import NewJob
from holdfast.runtime.clock import ManualClock
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import a_job


class SilentStore:
    """Answers after a long time that the answer is missing."""

    def __init__(self, clock: ManualClock, *, after_s: float, unknown: bool) -> None:
        self._clock = clock
        self._after_s = after_s
        self._unknown = unknown

    def subscribe(self, callback: Callable[..., None]) -> Callable[[], None]:
        return lambda: None

    async def insert_jobs(self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True) -> Any:
        self._clock.advance(self._after_s)
        raise StoreUnavailable("the connection is gone", unknown=self._unknown)


def _enqueue(*, unknown: bool) -> None:
    async def ask() -> None:
        clock, config = ManualClock(), Config(unknown_after_s=30.0)
        store: Any = SilentStore(clock, after_s=31.0, unknown=unknown)
        await Enqueuer(store, config, clock=clock, telemetry=Telemetry()).enqueue(a_job(), wait_s=1.0)

    asyncio.run(ask())


def test_a_first_answer_that_is_missing_after_the_time_for_asking_again_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="may or may not be there"):
        _enqueue(unknown=True)


def test_a_first_refusal_after_the_time_for_asking_again_is_one_for_certain() -> None:
    with pytest.raises(StoreUnavailable) as raised:
        _enqueue(unknown=False)
    assert not raised.value.unknown
