"""A call that is struck at every bytecode of our own code, one after the other, and at random moments."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import itertools
import math
import random
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from holdfast.runtime import thread_interrupts
from holdfast.runtime.thread_interrupts import ThreadCall
from holdfast.runtime.threads import ThreadPool, _Call

PATIENCE_S = 30


class Stop(BaseException):
    """What is raised in the functions here."""


class Other(BaseException):
    """Raised as well."""


#: All that runs in a pool's thread until a call is closed, and the loop around it.
OUR_CODE = {ThreadCall.carry_out.__code__, ThreadPool._work.__code__}


class Striker:
    """Interrupts a call in the moment before the n-th bytecode of our own code, as another thread would.

    A trace function is Python code, in which the exception would be raised at once. So it is caught there and set once
    more by a dictionary, whose call of C code is no bytecode that raises: it is pending when the traced code goes on,
    untraced.
    """

    def __init__(self, call: ThreadCall[Any], at: int) -> None:
        self._call = call
        self._at = at
        self.count = 0
        self.hit = False

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code not in OUR_CODE:
            return None
        frame.f_trace_opcodes = True
        if event != "opcode":
            return self.trace
        self.count += 1
        if self.count != self._at:
            return self.trace
        try:
            self._strike()
        except Stop:
            self.hit = True
        if not self.hit:
            return self.trace
        pending: defaultdict[str, int] = defaultdict(
            functools.partial(thread_interrupts._set_async_exc, threading.get_ident(), Stop)
        )
        sys.settrace(None)
        frame.f_trace = None
        _ = pending["again"]
        return None

    def _strike(self) -> None:
        if self._call._lock.locked():
            return  # held by this very thread: another one would wait until it is given back
        self._call.interrupt(Stop)
        for _ in range(10):  # if it was raised at all, then by here
            len("")


def function_in_python() -> str:
    return "value"


FUNCTIONS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Python": (function_in_python, "value"),
    "C": (functools.partial(math.factorial, 5), 120),
    "with arguments": (functools.partial(lambda *args, **more: (args, more), 1, a=2), ((1,), {"a": 2})),
}


class Broken(Exception):
    """A function's own error."""


def broken() -> None:
    raise Broken


def _struck_at(fn: Callable[[], Any], at: int) -> tuple[Striker, Any, BaseException | None, Any]:
    """Carry out one call in a pool's manner, struck at this bytecode, and another one after it."""
    answers: list[Any] = []

    def thread() -> None:
        call = ThreadCall(fn)
        striker = Striker(call, at)
        pool = ThreadPool(1)
        loop = asyncio.new_event_loop()
        first = _Call(call, contextvars.copy_context(), loop, loop.create_future())
        second = _Call(ThreadCall(function_in_python), contextvars.copy_context(), loop, loop.create_future())
        pool._waiting = 2
        for each in (first, second, None):
            pool._calls.put(each)
        sys.settrace(striker.trace)
        try:
            pool._work()
        finally:
            sys.settrace(None)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        assert not call._lock.locked()
        assert not pool._lock.locked()
        assert (pool.busy, pool.waiting) == (0, 0)
        answers.append((striker, *first.future.result(), second.future.result()))

    running = threading.Thread(target=thread)
    running.start()
    running.join(PATIENCE_S)
    assert answers, f"the thread died when it was struck at {at}"
    return answers[0]  # type: ignore[no-any-return]


@pytest.fixture(autouse=True, scope="module")
def bytecodes_are_traced() -> None:
    """Python 3.12 tells of bytecodes only from the next `settrace` on, once somebody has asked for them."""
    _struck_at(function_in_python, sys.maxsize)


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_struck_at_any_bytecode_a_value_that_was_returned_counts_and_the_next_call_is_undisturbed(kind: str) -> None:
    fn, value = FUNCTIONS[kind]
    hit = {"before its end": 0, "after it": 0}
    for at in itertools.count(1):
        striker, result, error, following = _struck_at(fn, at)
        if striker.count < at:
            break
        assert following == ("value", None), at
        if isinstance(error, Stop):
            hit["before its end"] += striker.hit
        else:
            assert (result, error) == (value, None), at
            hit["after it"] += striker.hit
    assert hit["after it"]
    assert hit["before its end"] or kind == "C"  # where there is no bytecode to be hit at


def test_struck_at_any_bytecode_what_was_done_in_c_code_counts() -> None:
    """No bytecode of it can be hit, so whenever it was called, it has returned; the strike comes right behind it."""
    for at in itertools.count(1):
        done: list[int] = []
        striker, _, error, following = _struck_at(functools.partial(done.append, 1), at)
        if striker.count < at:
            break
        assert (error is None) is bool(done), at
        assert following == ("value", None), at


def test_struck_at_any_bytecode_a_functions_own_error_comes_back_and_the_next_call_is_undisturbed() -> None:
    for at in itertools.count(1):
        striker, _, error, following = _struck_at(broken, at)
        if striker.count < at:
            break
        assert isinstance(error, (Broken, Stop)), at
        assert following == ("value", None), at


def test_thousands_of_short_calls_struck_at_random_moments_leave_the_threads_as_they_were() -> None:
    rng = random.Random(20)

    def work(n: int) -> int:
        for _ in range(n % 50):
            len("")
        return n

    async def scenario() -> None:
        pool = ThreadPool(2)
        calls: list[ThreadCall[int] | None] = [None] * 2
        over = threading.Event()
        struck = 0

        def strike_all_the_time() -> None:
            while not over.is_set():
                for call in calls:
                    if call is not None:
                        for _ in range(rng.randrange(40)):
                            pass
                        call.interrupt(rng.choice((Stop, Other)))

        async def lane(number: int) -> int:
            hit = 0
            for n in range(2000):
                call = calls[number] = ThreadCall(functools.partial(work, n))
                try:
                    assert await pool.run(call) == n
                except (Stop, Other):
                    hit += 1
                calls[number] = None
                assert await pool.run(lambda n=n: work(n)) == n  # type: ignore[misc]
            return hit

        switching = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        striker = threading.Thread(target=strike_all_the_time)
        striker.start()
        try:
            struck = sum(await asyncio.gather(lane(0), lane(1)))
        finally:
            over.set()
            striker.join(PATIENCE_S)
            sys.setswitchinterval(switching)
        assert struck
        assert (pool.busy, pool.waiting, pool._threads) == (0, 0, 2)
        pool.close()

    asyncio.run(scenario())
