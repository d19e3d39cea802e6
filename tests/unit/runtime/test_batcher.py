from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import NotOpen
from holdfast.runtime.batcher import Batcher

who = contextvars.ContextVar("who", default="nobody")


class DataError(Exception):
    pass


def is_data_error(exc: BaseException) -> bool:
    return isinstance(exc, DataError)


class Sink:
    """A flush that writes down its batches; refuses a batch with a guilty item; can be held up."""

    def __init__(self, guilty: Callable[[int], bool] = lambda item: False) -> None:
        self.guilty = guilty
        self.batches: list[list[int]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, items: list[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            self.begun.set()
            await self.gate.wait()
            await asyncio.sleep(0)
            for item in items:
                if self.guilty(item):
                    raise DataError(item)
            return [item * 10 for item in items]
        finally:
            self.in_flight -= 1


def batcher(flush: Any, **options: Any) -> Batcher[int, int]:
    return Batcher(flush, is_data_error=is_data_error, **options)


async def outcomes(*awaitables: Any) -> list[Any]:
    return await asyncio.gather(*awaitables, return_exceptions=True)


@given(
    items=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40),
    max_batch=st.integers(1, 12),
    max_pending=st.integers(1, 50),
    guilty_one_in=st.integers(1, 8),
)
def test_every_item_gets_its_own_result_whatever_its_neighbours_did(
    items: list[tuple[bool, bool]], max_batch: int, max_pending: int, guilty_one_in: int
) -> None:
    """Each item comes as (is submitted rather than put, the caller lets the loop turn afterwards)."""

    async def scenario() -> None:
        sink = Sink(lambda item: item % guilty_one_in == guilty_one_in - 1)
        under_test = batcher(sink, max_batch=max_batch, max_pending=max_pending)
        waiting: list[Any] = []
        for item, (is_submitted, turns) in enumerate(items):
            waiting.append(under_test.submit(item) if is_submitted else asyncio.create_task(under_test.put(item)))
            if turns:
                await asyncio.sleep(0)
        answers = await outcomes(*waiting)

        for item, answer in enumerate(answers):
            if sink.guilty(item):
                assert isinstance(answer, DataError)
                assert answer.args == (item,)
            else:
                assert answer == item * 10
        assert sink.most_in_flight <= 1
        assert all(len(batch) <= max_batch for batch in sink.batches)
        assert under_test.pending == 0
        # What succeeded was written exactly once, and every flush held its items in the order of coming.
        written = [item for batch in sink.batches if not any(map(sink.guilty, batch)) for item in batch]
        assert sorted(written) == [item for item in range(len(items)) if not sink.guilty(item)]
        order = [item for item in written if items[item][0]]
        assert order == sorted(order)

    asyncio.run(scenario())


def test_what_comes_in_one_tick_is_flushed_together_on_the_next() -> None:
    async def scenario() -> None:
        sink = Sink()
        under_test = batcher(sink)
        futures = [under_test.submit(item) for item in range(5)]
        assert sink.batches == []
        assert await outcomes(*futures) == [0, 10, 20, 30, 40]
        assert sink.batches == [[0, 1, 2, 3, 4]]

    asyncio.run(scenario())


def test_the_next_batch_gathers_while_one_is_in_flight() -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink, max_batch=3)
        first = under_test.submit(0)
        await sink.begun.wait()
        later = [under_test.submit(item) for item in range(1, 6)]
        assert under_test.pending == 6
        sink.gate.set()
        await outcomes(first, *later)
        assert sink.batches == [[0], [1, 2, 3], [4, 5]]
        assert under_test.pending == 0

    asyncio.run(scenario())


def test_callers_just_served_join_the_batch_that_has_gathered() -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink)

        async def twice(item: int) -> None:
            await under_test.put(item)
            await under_test.put(item + 1)

        first = asyncio.create_task(twice(0))
        await sink.begun.wait()
        between = under_test.submit(7)
        sink.gate.set()
        await outcomes(first, between)
        assert sink.batches == [[0], [7, 1]]

    asyncio.run(scenario())


def test_a_cancelled_caller_withdraws_nothing_and_cancels_nobody() -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink)
        in_flight = asyncio.create_task(under_test.put(1))
        await sink.begun.wait()
        gathered = asyncio.create_task(under_test.put(2))
        neighbour = asyncio.create_task(under_test.put(3))
        await asyncio.wait({neighbour}, timeout=0)
        in_flight.cancel()
        gathered.cancel()
        sink.gate.set()
        assert await neighbour == 30
        assert sink.batches == [[1], [2, 3]]
        assert in_flight.cancelled()
        assert gathered.cancelled()

    asyncio.run(scenario())


def test_an_exception_among_the_results_is_raised_for_its_item_alone() -> None:
    async def flush(items: list[int]) -> list[int | Exception]:
        return [KeyError(item) if item == 1 else item for item in items]

    async def scenario() -> None:
        under_test = batcher(flush)
        first, second, third = await outcomes(*(under_test.put(item) for item in range(3)))
        assert (first, third) == (0, 2)
        assert isinstance(second, KeyError)

    asyncio.run(scenario())


def test_any_other_error_goes_to_every_item_of_that_batch_only() -> None:
    error = OSError("gone")
    failures = [error]
    flushed: list[list[int]] = []

    async def flush(items: list[int]) -> list[int]:
        flushed.append(items)
        if failures:
            raise failures.pop()
        return items

    async def scenario() -> None:
        under_test = batcher(flush, max_batch=2)
        assert await outcomes(*(under_test.put(item) for item in range(4))) == [error, error, 2, 3]
        assert flushed == [[0, 1], [2, 3]]

    asyncio.run(scenario())


def test_bisecting_costs_few_flushes_and_does_not_chain_errors() -> None:
    async def scenario() -> None:
        sink = Sink(lambda item: item == 300)
        under_test = batcher(sink)
        answers = await outcomes(*(under_test.put(item) for item in range(512)))
        assert [item for item, answer in enumerate(answers) if isinstance(answer, Exception)] == [300]
        assert len(sink.batches) == 1 + 2 * 9
        assert answers[300].__context__ is None

    asyncio.run(scenario())


@pytest.mark.parametrize(("results", "said"), [([1], "1 results"), ([1, 2, 3], "3 results"), (None, "a NoneType")])
def test_a_wrong_number_of_results_is_a_clear_error_for_all(results: Any, said: str) -> None:
    async def flush(items: list[int]) -> Any:
        return results

    async def scenario() -> None:
        under_test = batcher(flush)
        answers = await outcomes(under_test.put(1), under_test.put(2))
        assert [str(answer) for answer in answers] == [
            f"the flush returned {said} for 2 items: it must return one result per item, in order"
        ] * 2

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [asyncio.CancelledError(), StopIteration()])
def test_errors_that_no_future_can_carry_are_wrapped(error: BaseException) -> None:
    async def flush(items: list[int]) -> Any:
        if isinstance(error, Exception):
            return [error]
        raise error

    async def scenario() -> None:
        under_test = batcher(flush)
        for _ in range(2):  # and the batcher goes on
            with pytest.raises(RuntimeError, match=type(error).__name__) as caught:
                await under_test.put(1)
            assert caught.value.__cause__ is error

    asyncio.run(scenario())


def test_a_classifier_that_fails_strands_nobody() -> None:
    async def scenario() -> None:
        under_test: Batcher[int, int] = Batcher(Sink(lambda item: True), is_data_error=lambda exc: 1 / 0 > 0)
        answers = await outcomes(under_test.put(1), under_test.put(2))
        assert [type(answer) for answer in answers] == [ZeroDivisionError] * 2

    asyncio.run(scenario())


def test_put_waits_for_room_first_come_first_served() -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink, max_pending=2, max_batch=2)
        puts = [asyncio.create_task(under_test.put(item)) for item in range(7)]
        await sink.begun.wait()
        await asyncio.wait(puts, timeout=0)
        assert under_test.pending == 2
        sink.gate.set()
        assert await outcomes(*puts) == [item * 10 for item in range(7)]
        assert [item for batch in sink.batches for item in batch] == list(range(7))

    asyncio.run(scenario())


class Watched(Batcher[int, int]):
    peak = 0

    def submit(self, item: int) -> asyncio.Future[int]:
        future = super().submit(item)
        self.peak = max(self.peak, self.pending)
        return future


@given(
    callers=st.integers(1, 12),
    puts=st.integers(1, 5),
    max_batch=st.integers(1, 6),
    max_pending=st.integers(1, 6),
    cancelled=st.sets(st.integers(0, 11)),
)
def test_puts_never_exceed_the_bound_and_nobody_waits_for_ever(
    callers: int, puts: int, max_batch: int, max_pending: int, cancelled: set[int]
) -> None:
    async def scenario() -> None:
        under_test = Watched(Sink(), is_data_error=is_data_error, max_batch=max_batch, max_pending=max_pending)

        async def caller(number: int) -> None:
            for item in range(puts):
                assert await under_test.put(item) == item * 10
                if number in cancelled and number + 1 < callers:
                    tasks[number + 1].cancel()

        tasks = [asyncio.create_task(caller(number)) for number in range(callers)]
        await asyncio.wait(tasks)
        assert all(task.cancelled() or task.exception() is None for task in tasks)
        assert under_test.peak <= max_pending

    asyncio.run(scenario())


def test_whoever_waits_gets_in_as_soon_as_there_is_room() -> None:
    async def scenario() -> None:
        second_begun, gate = asyncio.Event(), asyncio.Event()

        async def flush(items: list[int]) -> list[int]:
            if items == [1]:
                second_begun.set()
                await gate.wait()
            return items

        under_test = batcher(flush, max_pending=2, max_batch=1)
        puts = [asyncio.create_task(under_test.put(item)) for item in range(3)]
        await second_begun.wait()
        assert under_test.pending == 2
        gate.set()
        assert await outcomes(*puts) == [0, 1, 2]

    asyncio.run(scenario())


def test_a_place_that_is_not_used_is_passed_on() -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink, max_pending=1)
        first = under_test.submit(0)
        onlookers = [asyncio.create_task(under_test.room()) for _ in range(3)]
        last = asyncio.create_task(under_test.put(1))
        await asyncio.wait({last}, timeout=0)
        onlookers[0].cancel()
        # Cancelled in the very moment in which it is called.
        first.add_done_callback(lambda _: onlookers[1].cancel())
        sink.gate.set()
        await asyncio.wait(onlookers)
        assert await last == 10
        await under_test.room()

    asyncio.run(scenario())


def test_submit_never_waits() -> None:
    async def scenario() -> None:
        under_test = batcher(Sink(), max_pending=1)
        futures = [under_test.submit(item) for item in range(3)]
        assert under_test.pending == 3
        assert await outcomes(*futures) == [0, 10, 20]

    asyncio.run(scenario())


def test_close_flushes_what_is_pending_and_refuses_what_comes_after() -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink, max_pending=2, max_batch=1)
        accepted = [under_test.submit(item) for item in range(2)]
        waiting = asyncio.create_task(under_test.put(9))
        await sink.begun.wait()
        closing = [asyncio.create_task(under_test.close()) for _ in range(2)]
        done, _ = await asyncio.wait(closing, timeout=0)
        assert not done
        with pytest.raises(NotOpen, match="closed"):
            under_test.submit(5)
        with pytest.raises(NotOpen):
            await waiting  # although nothing has been flushed yet
        sink.gate.set()
        await asyncio.gather(*closing)
        assert [future.result() for future in accepted] == [0, 10]
        await under_test.close()
        assert sink.batches == [[0], [1]]

    asyncio.run(scenario())


def test_errors_of_callers_who_have_gone_are_not_logged() -> None:
    async def flush(items: list[int]) -> list[int]:
        raise OSError("gone")

    async def scenario() -> None:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        under_test = batcher(flush)
        under_test.submit(1)
        await under_test.close()
        del under_test
        gc.collect()
        assert complaints == []

    asyncio.run(scenario())


def test_the_flush_does_not_run_in_the_context_of_its_first_caller() -> None:
    seen: list[str] = []

    async def flush(items: list[int]) -> list[int]:
        seen.append(who.get())
        return items

    async def scenario() -> None:
        under_test = batcher(flush)
        who.set("first caller")
        await under_test.put(1)
        assert seen == ["nobody"]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_in_flight", [True, False])
def test_a_shut_down_of_the_loop_leaves_no_caller_waiting_and_close_does_not_hang(is_in_flight: bool) -> None:
    async def scenario() -> None:
        sink = Sink()
        sink.gate.clear()
        under_test = batcher(sink)
        left = [under_test.submit(1)]
        if is_in_flight:
            await sink.begun.wait()
            left.append(under_test.submit(2))
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await under_test.close()
        assert all(future.cancelled() for future in left)
        assert under_test.pending == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("bounds", [{"max_batch": 0}, {"max_pending": 0}])
def test_senseless_bounds_are_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        batcher(Sink(), **bounds)
