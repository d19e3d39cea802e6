"""A function call in a thread into which others can raise an exception, at its next bytecode; what pools run.

Python raises such an exception after a call, at the entry of a function or at a jump backwards, and nowhere else: never
between two loads or stores, and never inside a function written in C. All that is said below rests on that.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# By subscript: as an attribute it would be shared, argument types included, with whoever else uses it.
_set_async_exc = ctypes.pythonapi["PyThreadState_SetAsyncExc"]
_set_async_exc.argtypes = (ctypes.c_ulong, ctypes.py_object)
_set_async_exc.restype = ctypes.c_int
_NOTHING = ctypes.py_object()  # a null pointer

_VALUE = "value"
_SPARED_FILES = frozenset({logging.__file__, "<frozen importlib._bootstrap>"})


class _TakenBack(BaseException):
    """Takes the place of what was not raised in time, and is raised and caught at once."""


class ThreadCall(Generic[T]):
    """One call of a function, which one thread carries out and others may interrupt.

    1. What `interrupt` is given is raised inside the function, and only there: not in `begin`, not in the code around
       it, not in the thread's next call. Before the function has begun, it is raised instead of beginning.
    2. A function that has returned has returned: an interruption that comes with the return changes nothing.
    3. It is raised under a lock while the call is open. The call is closed under the same lock, and what was not
       raised until then is taken back.
    4. A thread that sits in C code hears of it when that returns. Of two that wait there, the last is raised.
    """

    __slots__ = ("_begin", "_early", "_fn", "_lock", "_over", "_struck", "_thread")

    def __init__(self, fn: Callable[[], T], *, begin: Callable[[], None] | None = None) -> None:
        self._fn = fn
        self._begin = begin
        self._lock = threading.Lock()
        self._thread: int | None = None
        """The thread that is to be struck: while the function runs there."""
        self._early: type[BaseException] | None = None
        self._struck = False
        self._over = False

    def interrupt(self, error: type[BaseException]) -> bool:
        """Raise `error` in the function. False when it may not be now, and should be tried again soon."""
        with self._lock:
            if self._over:
                return True
            if self._thread is None:
                self._early = error
                return True
            if _must_be_spared(self._thread):
                return False
            self._struck = True
            _raise_in(self._thread, error)
            return True

    def carry_out(self, context: Context) -> tuple[T | None, BaseException | None]:
        """Call the function in this thread: what it returned, or what it raised. Raises nothing of either."""
        thread = threading.get_ident()
        # A defaultdict calls its factory and keeps the answer without a bytecode in between. So no interruption can
        # come after the function's return and before its value is kept, nor can it leave a lock behind that was taken.
        kept: defaultdict[str, Any] = defaultdict(partial(context.run, self._fn))
        locked: defaultdict[str, bool] = defaultdict(self._lock.acquire)
        error: BaseException | None = None
        try:
            if self._begin is not None:
                self._begin()
            with self._lock:
                if self._early is not None:
                    raise self._early
                self._thread = thread
            _ = kept[_VALUE]
        except BaseException as raised:
            error = raised
        # From here on only that can still be raised which was under way: when the lock is ours, at most one.
        try:
            _ = locked[_VALUE]
        except BaseException:
            _ = None  # it came too late: the function has ended
        self._thread, self._over = None, True
        if self._struck:
            # Not with a null pointer: with that, Python would look for an exception at every turn from then on, in all
            # threads (until 3.12 it forgets that there is none), and a traced thread would never get further.
            try:
                _set_async_exc(thread, _TakenBack)
            except BaseException:
                _ = None
        self._lock.release()
        try:
            return (kept[_VALUE], None) if _VALUE in kept else (None, error)
        finally:
            del error  # its traceback refers to this frame: no cycle for the garbage collector


def _raise_in(thread: int, error: type[BaseException]) -> None:
    if _set_async_exc(thread, error) > 1:  # "more than one thread state": then nobody knows who was hit
        _set_async_exc(thread, _NOTHING)


def _must_be_spared(thread: int) -> bool:
    """Whether the thread is where an exception between two bytecodes harms more than its own function.

    `logging` takes the lock of a handler that all threads share by `acquire(); try:`; an import that breaks off may be
    one that cannot be made again in this process; in a `__del__` the exception would be lost. (A thread that comes
    there in the microsecond between this look and the strike is hit all the same.)
    """
    frame = sys._current_frames().get(thread)
    while frame is not None:
        code = frame.f_code
        if code.co_filename in _SPARED_FILES or code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
