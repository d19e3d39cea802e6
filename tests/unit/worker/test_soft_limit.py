"""`SoftLimited` alone: exactly like awaiting the coroutine, but for one exception that it can be given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.core.errors import SoftTimeout
from holdfast.worker.soft_limit import SoftLimited, SoftTimeoutCancel


async def limited(
    coroutine: Coroutine[Any, Any, Any], strikes: list[SoftLimited], outranked: Callable[[], bool] = lambda: False
) -> Any:
    task = asyncio.current_task()
    assert task is not None
    one = SoftLimited(coroutine, task, outranked=outranked)
    strikes.append(one)
    return await one


def test_without_a_strike_it_is_an_ordinary_await() -> None:
    async def work(fail: bool) -> str:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, "x")
        assert await future == "x"
        await asyncio.sleep(0)
        failing = asyncio.get_running_loop().create_future()
        failing.set_exception(KeyError("k"))
        with pytest.raises(KeyError):
            await failing
        if fail:
            raise LookupError("mine")
        return "done"

    assert asyncio.run(limited(work(False), [])) == "done"
    with pytest.raises(LookupError, match="mine"):
        asyncio.run(limited(work(True), []))


def test_a_strike_is_raised_where_the_coroutine_stands_and_the_task_is_clean_after_it() -> None:
    async def main() -> None:
        strikes: list[SoftLimited] = []
        waiting = asyncio.Event()
        caught: list[BaseException] = []

        async def work() -> int:
            try:
                waiting.set()
                await asyncio.Event().wait()
            except SoftTimeout as error:
                caught.append(error)
            task = asyncio.current_task()
            assert task is not None
            await asyncio.sleep(0)
            return task.cancelling()

        task = asyncio.create_task(limited(work(), strikes))
        await waiting.wait()
        strikes[0].strike(1.5)
        assert await task == 0
        assert str(caught[0]) == "the soft limit of 1.5 s has passed"
        assert isinstance(caught[0], Exception)
        assert isinstance(caught[0], asyncio.CancelledError)

    asyncio.run(main())


def test_a_cancellation_from_outside_stays_one() -> None:
    async def main() -> None:
        waiting = asyncio.Event()
        seen: list[type[BaseException]] = []

        async def work() -> None:
            try:
                waiting.set()
                await asyncio.Event().wait()
            except BaseException as error:
                seen.append(type(error))
                raise

        task = asyncio.create_task(limited(work(), []))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert seen == [asyncio.CancelledError]

    asyncio.run(main())


def test_a_strike_before_the_first_step_comes_at_the_first_await() -> None:
    async def main() -> None:
        strikes: list[SoftLimited] = []

        async def work() -> str:
            strikes[0].strike(1)
            try:
                await asyncio.sleep(0)
            except SoftTimeout:
                return "struck"
            return "missed"

        assert await asyncio.create_task(limited(work(), strikes)) == "struck"

    asyncio.run(main())


def test_what_is_kept_of_it_is_called_as_users_know_it() -> None:
    kind = type(SoftTimeoutCancel())
    assert (kind.__module__, kind.__qualname__) == (SoftTimeout.__module__, SoftTimeout.__qualname__)


def test_the_coroutine_is_closed_with_its_awaiter() -> None:
    closed: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    async def main() -> None:
        outer = limited(work(), [])
        outer.send(None)
        outer.close()

    asyncio.run(main())
    assert closed == ["closed"]


@pytest.mark.parametrize("outranked", [False, True])
def test_together_with_a_timeout_inside_the_task_both_come_unless_the_run_is_to_end(outranked: bool) -> None:
    async def main() -> None:
        strikes: list[SoftLimited] = []
        scopes: list[asyncio.Timeout] = []
        waiting, go_on = asyncio.Event(), asyncio.Event()
        seen: list[str] = []

        async def work() -> int:
            try:
                try:
                    async with asyncio.timeout(3600) as scope:
                        scopes.append(scope)
                        waiting.set()
                        await asyncio.Event().wait()
                except TimeoutError:
                    seen.append("timeout")
                asyncio.get_running_loop().call_later(0.05, go_on.set)
                await go_on.wait()
            except SoftTimeout:
                seen.append("soft limit")
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        task = asyncio.create_task(limited(work(), strikes, lambda: outranked))
        await waiting.wait()
        scopes[0].reschedule(0)  # both in one turn of the loop: the task sees a single CancelledError
        strikes[0].strike(1)
        assert await task == 0
        assert seen == (["timeout"] if outranked else ["timeout", "soft limit"])

    asyncio.run(main())


def test_together_with_a_timeout_after_which_the_coroutine_ends_it_hits_nobody_else() -> None:
    async def main() -> None:
        strikes: list[SoftLimited] = []
        scopes: list[asyncio.Timeout] = []
        waiting = asyncio.Event()

        async def work() -> str:
            try:
                async with asyncio.timeout(3600) as scope:
                    scopes.append(scope)
                    waiting.set()
                    await asyncio.Event().wait()
            except TimeoutError:
                return "timeout"
            return "missed"

        async def surrounded() -> str:
            result: str = await limited(work(), strikes)
            for _ in range(3):
                await asyncio.sleep(0)  # what follows in the same task, a middleware or a clean-up
            return result

        task = asyncio.create_task(surrounded())
        await waiting.wait()
        scopes[0].reschedule(0)
        strikes[0].strike(1)
        assert await task == "timeout"

    asyncio.run(main())
