"""What a producer hears when the store's answer does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.client.doubts import Doubts
from holdfast.client.enqueuer import Enqueuer
from holdfast.config import Config
from holdfast.core.errors import IdempotencyConflict, KeyHeld, NotUnique, OutcomeUnknown, QueueFull, StoreUnavailable
from holdfast.core.job import KeyClaim, NewJob
from holdfast.core.state import State
from holdfast.core.unique import UniqueClaim
from holdfast.runtime.clock import ManualClock, SystemClock
from holdfast.stores.base import Conflict, Existing, Full, Inserted, InsertResult, Taken, Withheld
from holdfast.telemetry.hub import Telemetry
from holdfast.testing.contracts.arrange import a_job, an_id


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


class LateStore:
    """Does not answer the first request, which is still on its way when the others are answered, as it is told to."""

    def __init__(self, *answers: list[InsertResult]) -> None:
        self._answers = list(answers)
        self.asked = 0

    def subscribe(self, callback: Callable[..., None]) -> Callable[[], None]:
        return lambda: None

    async def queue_settings(self) -> dict[str, Any]:
        return {}

    async def insert_jobs(self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise StoreUnavailable("the connection fell silent", unknown=True)
        return self._answers.pop(0)


def _told(jobs: list[NewJob], *answers: list[InsertResult], wait_s: float = 0.0) -> Any:
    async def ask() -> Any:
        store: Any = LateStore(*answers)
        enqueuer = Enqueuer(store, Config(), clock=SystemClock(), telemetry=Telemetry())
        if len(jobs) == 1:
            return await enqueuer.enqueue(jobs[0], wait_s=wait_s)
        return await enqueuer.enqueue_many(jobs, wait_s=wait_s)

    return asyncio.run(ask())


_OTHER = an_id()
_FULL = Full("default", depth=10, high=10, low=5)


@pytest.mark.parametrize(("answer", "cause"), [(_FULL, QueueFull), (Taken(_OTHER), NotUnique)])
def test_a_refusal_is_none_while_an_earlier_try_may_yet_be_carried_out(answer: InsertResult, cause: type) -> None:
    """The first request comes later: then the queue has room, or the other job has ended."""
    with pytest.raises(OutcomeUnknown, match="an earlier try of the same call was not answered") as raised:
        _told([a_job()], [answer])
    assert isinstance(raised.value.__cause__, cause)
    with pytest.raises(OutcomeUnknown, match=r"2 job\(s\)"):
        _told([a_job(), a_job()], [Withheld(), answer])


def test_a_key_that_another_has_refuses_for_certain() -> None:
    """It is given once: the first request will be told the same."""
    keyed = a_job(key=KeyClaim("order-1", b"", 60.0))
    with pytest.raises(IdempotencyConflict):
        _told([keyed], [Conflict(_OTHER)])
    with pytest.raises(IdempotencyConflict):
        _told([a_job(), keyed], [Withheld(), Conflict(_OTHER)])
    assert _told([keyed], [Existing(_OTHER)]) == _OTHER


def test_a_place_that_another_has_is_given_back_and_so_promises_nothing() -> None:
    with pytest.raises(OutcomeUnknown, match="such a job is there already"):
        _told([a_job(unique=UniqueClaim("k"))], [Existing(_OTHER)])


def test_who_waited_for_room_and_got_it_is_in_no_doubt() -> None:
    job = a_job()
    assert _told([job], [_FULL], [Inserted(job.id, State.READY)], wait_s=60.0) == job.id


class SplitStore(LateStore):
    """The second request finds a key in an open transaction, so that its jobs are asked for one by one."""

    async def insert_jobs(self, jobs: Sequence[NewJob], *, whole: bool = False, admit: bool = True) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise StoreUnavailable("the connection fell silent", unknown=True)
        if len(jobs) > 1:
            raise KeyHeld("order-1 is in somebody's transaction")
        return [Taken(_OTHER)] if jobs[0].unique else [Inserted(jobs[0].id, State.READY)]


def test_a_try_together_with_others_is_not_forgotten_when_they_are_asked_for_one_by_one() -> None:
    async def ask() -> None:
        store: Any = SplitStore()
        enqueuer = Enqueuer(store, Config(), clock=SystemClock(), telemetry=Telemetry())
        keyed = a_job(key=KeyClaim("order-1", b"", 60.0))
        told = await asyncio.gather(
            enqueuer.enqueue(a_job(unique=UniqueClaim("u")), wait_s=0.0),
            enqueuer.enqueue(keyed, wait_s=0.0),
            return_exceptions=True,
        )
        assert isinstance(told[0], OutcomeUnknown)
        assert isinstance(told[0].__cause__, NotUnique)
        assert told[1] == keyed.id

    asyncio.run(ask())


def test_a_caller_who_has_gone_leaves_no_doubt_behind() -> None:
    async def ask() -> None:
        store: Any = LateStore([_FULL])
        doubts = Doubts()
        enqueuer = Enqueuer(store, Config(), clock=SystemClock(), telemetry=Telemetry())
        enqueuer._doubts = doubts
        job = a_job()
        call = asyncio.create_task(enqueuer.enqueue(job, wait_s=0.0))
        while not doubts.are_about([job]):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        await enqueuer.close()  # which waits for the try that is under way
        assert not doubts.are_about([job])
        assert store.asked == 2

    asyncio.run(ask())
