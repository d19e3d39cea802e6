"""Calls in threads that are interrupted: where it is raised, where it never is, and that the thread lives on."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import logging
import sys
import threading
import weakref
from types import CodeType
from typing import Any

import pytest

from holdfast.runtime import thread_interrupts
from holdfast.runtime.thread_interrupts import ThreadCall
from holdfast.runtime.threads import ThreadPool

PATIENCE_S = 30


class Stop(BaseException):
    """What is raised in the functions here."""


class Other(BaseException):
    """Raised after it."""


class Broken(Exception):
    """A function's own error."""


class Loop:
    """A function that never ends by itself, at work in a thread of a pool."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.left = threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        try:
            self.nested()
        finally:
            self.left.set()

    def nested(self) -> None:
        while True:
            len("")


async def begun(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE_S)


async def expect_undisturbed(pool: ThreadPool, thread: int) -> None:
    """The pool's only thread is the same as before and does its work."""

    def work() -> int:
        return sum(len(str(n)) for n in range(100))

    assert pool.busy == 0
    assert await pool.run(work) == 190
    assert await pool.run(threading.get_ident) == thread


def test_it_is_raised_in_the_function_wherever_that_is_and_the_thread_goes_on() -> None:
    async def scenario() -> None:
        pool, work = ThreadPool(1), Loop()
        thread = await pool.run(threading.get_ident)
        call = ThreadCall(work)
        running = asyncio.create_task(pool.run(call))
        await begun(work.begun)
        assert call.interrupt(Stop)
        with pytest.raises(Stop):
            await running
        assert work.left.is_set()
        assert call.interrupt(Stop)  # it is over: nobody is hit
        await expect_undisturbed(pool, thread)
        pool.close()

    asyncio.run(scenario())


def test_before_the_function_has_begun_it_is_raised_instead_of_beginning() -> None:
    async def scenario() -> None:
        pool, called = ThreadPool(1), []
        thread = await pool.run(threading.get_ident)
        call = ThreadCall(lambda: called.append(1), begin=lambda: called.append(0))
        call.interrupt(Stop)
        with pytest.raises(Stop):
            await pool.run(call)
        assert called == [0]
        await expect_undisturbed(pool, thread)
        pool.close()

    asyncio.run(scenario())


def test_what_prepares_the_function_is_not_hit_and_may_refuse_it() -> None:
    async def scenario() -> None:
        pool, seen = ThreadPool(1), []

        def begin() -> None:
            call.interrupt(Stop)
            seen.append("prepared in peace")

        call: ThreadCall[None] = ThreadCall(lambda: seen.append("called"), begin=begin)
        with pytest.raises(Stop):
            await pool.run(call)

        def refuse() -> None:
            raise LookupError("not today")

        with pytest.raises(LookupError):
            await pool.run(ThreadCall(lambda: seen.append("called"), begin=refuse))
        assert seen == ["prepared in peace"]
        pool.close()

    asyncio.run(scenario())


def test_one_that_was_swallowed_can_be_repeated() -> None:
    async def scenario() -> None:
        pool = ThreadPool(1)
        deaf, swallowed = Loop(), threading.Event()

        def work() -> None:
            try:
                deaf()
            except Stop:
                swallowed.set()
                deaf.nested()

        call = ThreadCall(work)
        running = asyncio.create_task(pool.run(call))
        await begun(deaf.begun)
        call.interrupt(Stop)
        await begun(swallowed)
        call.interrupt(Other)
        with pytest.raises(Other):
            await running
        pool.close()

    asyncio.run(scenario())


def test_a_thread_in_c_code_hears_of_it_when_that_returns_and_of_the_last_only() -> None:
    async def scenario() -> None:
        pool, entered, gate = ThreadPool(1), threading.Event(), threading.Lock()
        gate.acquire()
        seen: list[str] = []

        def work() -> str:
            entered.set()
            try:
                gate.acquire()
                seen.append("not reached")
            except Other:
                return "told"
            return "missed"

        call = ThreadCall(work)
        running = asyncio.create_task(pool.run(call))
        await begun(entered)
        # Until the thread sits in the lock, it would hear of the first at once: `entered.set()` is Python code.
        while not _waits_in(call, work.__code__):
            await asyncio.sleep(0)
        call.interrupt(Stop)
        call.interrupt(Other)
        gate.release()
        assert await running == "told"
        assert seen == []
        pool.close()

    asyncio.run(scenario())


def _waits_in(call: ThreadCall[Any], code: CodeType) -> bool:
    frame = sys._current_frames().get(call._thread or 0)
    return frame is not None and frame.f_code is code and frame.f_lineno == code.co_firstlineno + 3


def test_a_strike_that_is_under_way_when_the_function_returns_is_waited_for_and_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The striker has seen an open call and is slow; the thread must not go on to its next call meanwhile."""

    async def scenario() -> None:
        pool, returned, striking = ThreadPool(1), threading.Event(), threading.Event()
        thread = await pool.run(threading.get_ident)
        strike = thread_interrupts._raise_in

        def slowly(thread: int, error: type[BaseException]) -> None:
            striking.set()
            assert returned.wait(PATIENCE_S)
            strike(thread, error)

        monkeypatch.setattr(thread_interrupts, "_raise_in", slowly)

        def work() -> str:
            assert striking.wait(PATIENCE_S)
            returned.set()
            return "done"

        for _ in range(200):
            striking.clear()
            returned.clear()
            call = ThreadCall(work)
            running = asyncio.create_task(pool.run(call))
            await asyncio.to_thread(_interrupt_when_open, call)
            try:
                assert await running == "done"
            except Stop:  # it was still in `returned.set()`: then the function was hit, as it should be
                assert returned.is_set()
            await expect_undisturbed(pool, thread)
        pool.close()

    asyncio.run(scenario())


def _interrupt_when_open(call: ThreadCall[Any]) -> None:
    while call._thread is None:
        pass
    call.interrupt(Stop)


# ------------------------------------------------------------ where it must not be raised


def test_a_thread_that_logs_is_spared_until_it_is_done() -> None:
    """A handler's lock is taken by `acquire(); try:`: one that was struck in between is locked for all, for good."""

    async def scenario() -> None:
        pool, inside, go_on = ThreadPool(1), threading.Event(), threading.Event()

        class Slow(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                inside.set()
                assert go_on.wait(PATIENCE_S)

        logger = logging.Logger("spared")
        handler = Slow()
        logger.addHandler(handler)
        after = Loop()

        def work() -> None:
            logger.warning("slow")
            after()

        call = ThreadCall(work)
        running = asyncio.create_task(pool.run(call))
        await begun(inside)
        assert not call.interrupt(Stop)
        go_on.set()
        await begun(after.begun)
        assert call.interrupt(Stop)
        with pytest.raises(Stop):
            await running
        assert handler.lock is not None
        assert handler.lock.acquire(blocking=False)
        handler.lock.release()
        pool.close()

    asyncio.run(scenario())


def test_an_import_is_not_broken_off(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()
    (tmp_path / "slow_to_import.py").write_text(
        "import builtins\nbuiltins.slow_import[0].set()\nassert builtins.slow_import[1].wait(30)\nready = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.slow_import", (inside, go_on), raising=False)

    async def scenario() -> None:
        pool = ThreadPool(1)

        def work() -> bool:
            import slow_to_import  # type: ignore[import-not-found]

            return bool(slow_to_import.ready)

        call = ThreadCall(work)
        running = asyncio.create_task(pool.run(call))
        await begun(inside)
        assert not call.interrupt(Stop)
        go_on.set()
        assert await running
        pool.close()

    asyncio.run(scenario())


def test_in_a_finaliser_where_it_would_be_lost_it_is_not_raised() -> None:
    async def scenario() -> None:
        pool, inside, go_on = ThreadPool(1), threading.Event(), threading.Event()

        class Slow:
            def __del__(self) -> None:
                inside.set()
                assert go_on.wait(PATIENCE_S)

        def work() -> str:
            Slow()
            return "done"

        call = ThreadCall(work)
        running = asyncio.create_task(pool.run(call))
        await begun(inside)
        assert not call.interrupt(Stop)
        go_on.set()
        assert await running == "done"
        pool.close()

    asyncio.run(scenario())


# ------------------------------------------------------------ what Python answers


def test_a_strike_that_hit_more_than_one_thread_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []

    def answer(thread: int, error: object) -> int:
        calls.append(error)
        return 2

    monkeypatch.setattr(thread_interrupts, "_set_async_exc", answer)
    thread_interrupts._raise_in(7, Stop)
    assert calls == [Stop, thread_interrupts._NOTHING]


def test_a_thread_that_has_gone_is_no_error() -> None:
    gone = threading.Thread(target=lambda: None)
    gone.start()
    gone.join(PATIENCE_S)
    assert gone.ident is not None
    thread_interrupts._raise_in(gone.ident, Stop)


def test_the_function_that_others_may_use_as_well_is_left_as_it_is() -> None:
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc.argtypes is None


def test_an_error_refers_to_nothing_that_only_the_garbage_collector_could_take_apart() -> None:
    class Big:
        pass

    async def scenario() -> None:
        pool, big = ThreadPool(1), Big()
        gone = weakref.ref(big)

        def fail(big: Big) -> None:
            raise Broken

        gc.disable()
        try:
            with contextlib.suppress(Broken):  # not `pytest.raises`, which keeps the error
                await pool.run(functools.partial(fail, big))
            await pool.run(lambda: None)
            del big
            assert gone() is None
        finally:
            gc.enable()
        pool.close()

    asyncio.run(scenario())
