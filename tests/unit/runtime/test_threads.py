from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import weakref

import pytest

from holdfast.core.errors import NotOpen
from holdfast.runtime.threads import LoopThread, ThreadPool

who = contextvars.ContextVar("who", default="nobody")


class Blocker:
    """A function that says when it has begun and returns when told."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.go_on.wait(30)
        return "done"

    async def wait_begun(self) -> None:
        assert await asyncio.get_running_loop().run_in_executor(None, self.begun.wait, 30)


def test_it_returns_the_result_from_a_named_daemon_thread_and_reuses_it() -> None:
    async def scenario() -> None:
        pool = ThreadPool(4, name="tasks")
        threads = {await pool.run(threading.current_thread) for _ in range(5)}
        assert [(thread.name, thread.daemon) for thread in threads] == [("tasks-1", True)]
        pool.close()

    asyncio.run(scenario())


def test_no_more_than_max_threads_run_at_once_and_the_others_wait_their_turn() -> None:
    async def scenario() -> None:
        pool = ThreadPool(2)
        blockers = [Blocker() for _ in range(4)]
        calls = [asyncio.create_task(pool.run(blocker)) for blocker in blockers]
        await blockers[0].wait_begun()
        await blockers[1].wait_begun()
        assert (pool.busy, pool.waiting) == (2, 2)
        assert not blockers[2].begun.is_set()
        blockers[0].go_on.set()
        await blockers[2].wait_begun()
        assert not blockers[3].begun.is_set()
        for blocker in blockers:
            blocker.go_on.set()
        assert await asyncio.gather(*calls) == ["done"] * 4
        assert (pool.busy, pool.waiting) == (0, 0)
        pool.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_a_function_raises_comes_back_and_the_thread_lives(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def scenario() -> None:
        pool = ThreadPool(1)
        ident = await pool.run(threading.get_ident)
        with pytest.raises(type(error)) as caught:
            await pool.run(fail)
        assert caught.value is error
        assert await pool.run(threading.get_ident) == ident
        pool.close()

    asyncio.run(scenario())


def test_stop_iteration_comes_back_as_the_cause() -> None:
    async def scenario() -> None:
        pool = ThreadPool(1)
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            await pool.run(lambda: next(iter(())))
        assert isinstance(caught.value.__cause__, StopIteration)
        assert await pool.run(lambda: "alive") == "alive"
        pool.close()

    asyncio.run(scenario())


def test_cancelling_the_awaiter_frees_the_place_only_when_the_function_returns() -> None:
    async def scenario() -> None:
        pool = ThreadPool(1)
        blocker = Blocker()
        call = asyncio.create_task(pool.run(blocker))
        await blocker.wait_begun()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert pool.busy == 1
        following = asyncio.create_task(pool.run(lambda: "next"))
        done, _ = await asyncio.wait({following}, timeout=0)
        assert not done
        blocker.go_on.set()
        assert await following == "next"
        assert pool.busy == 0
        pool.close()

    asyncio.run(scenario())


def test_a_call_cancelled_before_its_turn_never_runs() -> None:
    async def scenario() -> None:
        pool = ThreadPool(1)
        blocker, ran = Blocker(), threading.Event()
        first = asyncio.create_task(pool.run(blocker))
        await blocker.wait_begun()
        second = asyncio.create_task(pool.run(ran.set))
        await asyncio.wait({second}, timeout=0)
        assert pool.waiting == 1
        second.cancel()
        await asyncio.wait({second})
        assert pool.waiting == 0
        blocker.go_on.set()
        await first
        await pool.run(lambda: None)
        assert not ran.is_set()
        pool.close()

    asyncio.run(scenario())


def test_functions_see_a_copy_of_their_callers_context() -> None:
    def look_and_change() -> str:
        seen = who.get()
        who.set("changed")
        return seen

    async def scenario() -> None:
        pool = ThreadPool(1)
        who.set("caller")
        assert await pool.run(look_and_change) == "caller"
        assert who.get() == "caller"
        pool.close()

    asyncio.run(scenario())


def test_an_idle_thread_keeps_nothing_of_the_last_call_alive() -> None:
    class Big:
        pass

    async def scenario() -> None:
        pool = ThreadPool(1)
        big = Big()
        gone = threading.Event()
        weakref.finalize(big, gone.set)
        await pool.run(lambda big=big: [big])  # type: ignore[misc]
        del big
        assert await asyncio.get_running_loop().run_in_executor(None, gone.wait, 5)
        pool.close()

    asyncio.run(scenario())


def test_close_refuses_new_calls_lets_accepted_ones_run_and_ends_the_threads() -> None:
    async def scenario() -> None:
        pool = ThreadPool(1, name="closing")
        thread = await pool.run(threading.current_thread)
        blocker = Blocker()
        running, waiting = (
            asyncio.create_task(pool.run(blocker)),
            asyncio.create_task(pool.run(lambda: "ran")),
        )
        await blocker.wait_begun()
        pool.close()
        pool.close()
        with pytest.raises(NotOpen, match="closing"):
            await pool.run(lambda: None)
        blocker.go_on.set()
        assert await asyncio.gather(running, waiting) == ["done", "ran"]
        await asyncio.get_running_loop().run_in_executor(None, thread.join, 30)
        assert not thread.is_alive()

    asyncio.run(scenario())


def test_a_function_that_outlives_the_loop_does_no_harm() -> None:
    blocker, pool = Blocker(), ThreadPool(1)
    threads: list[threading.Thread] = []

    async def scenario() -> None:
        threads.append(await pool.run(threading.current_thread))
        call = asyncio.create_task(pool.run(blocker))
        await blocker.wait_begun()
        call.cancel()
        await asyncio.wait({call})

    asyncio.run(scenario())
    blocker.go_on.set()
    pool.close()
    threads[0].join(30)
    assert not threads[0].is_alive()
    assert pool.busy == 0


def test_a_stuck_thread_does_not_block_the_end_of_the_interpreter() -> None:
    program = """
import asyncio, threading
from holdfast.runtime.threads import ThreadPool

async def main():
    begun = threading.Event()
    def stuck():
        begun.set()
        threading.Event().wait()
    call = asyncio.create_task(ThreadPool(1).run(stuck))
    await asyncio.to_thread(begun.wait)
    call.cancel()

asyncio.run(main())
print("ended")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert (ended.stdout, ended.stderr) == ("ended\n", "")


def test_a_pool_needs_a_thread() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ThreadPool(0)


def test_a_loop_thread_runs_coroutines_in_a_daemon_thread_of_its_own() -> None:
    async def where() -> tuple[str, bool]:
        thread = threading.current_thread()
        return thread.name, thread.daemon

    there = LoopThread("heart")
    there.start()
    there.start()
    try:
        assert there.submit(where()).result(30) == ("heart", True)
    finally:
        there.stop()


def test_stop_cancels_what_runs_there_and_ends_the_thread() -> None:
    begun, tidied = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.set()

    there = LoopThread("heart")
    there.start()
    running = there.submit(work())
    assert begun.wait(30)
    not_begun = there.submit(work())
    there.stop()
    there.stop()
    assert tidied.is_set()
    assert running.cancelled()
    assert not_begun.cancelled()
    assert "heart" not in {thread.name for thread in threading.enumerate()}


def test_it_goes_on_while_the_main_loop_is_blocked() -> None:
    async def beat() -> str:
        return "beat"

    async def scenario() -> None:
        there = LoopThread("heart")
        there.start()
        assert there.submit(beat()).result(30) == "beat"  # blocks this loop
        there.stop()

    asyncio.run(scenario())


def test_a_loop_thread_may_be_stopped_from_within() -> None:
    there = LoopThread("heart")

    async def stop_here() -> None:
        there.stop()

    there.start()
    assert there.submit(stop_here()).result(30) is None
    there.stop()
    assert "heart" not in {thread.name for thread in threading.enumerate()}


def test_nothing_is_accepted_before_start_or_after_stop() -> None:
    async def nothing() -> None:
        pass

    there = LoopThread("heart")
    with pytest.raises(NotOpen, match="start"):
        there.submit(nothing())
    there.stop()
    there.start()
    assert "heart" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(NotOpen, match="heart"):
        there.submit(nothing())
