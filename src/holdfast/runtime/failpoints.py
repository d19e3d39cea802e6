"""Named moments where a test can strike; they cost one look at an empty dict when nothing is armed.

A module declares its moments at import (`C4 = declare("C4", "claimed, user code not started")`) and
passes them with `failpoint(C4)` or `await afailpoint(C4)`. Not for anything that production relies on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import difflib
import inspect
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, NoReturn, TypeAlias, get_args

from holdfast.core.errors import ConfigError

Strike: TypeAlias = Literal["fail", "kill9", "stop", "hang"]
Action: TypeAlias = Strike | BaseException | type[BaseException] | Callable[[], object]

_STRIKES: tuple[Strike, ...] = get_args(Strike)
_NAME = re.compile(r"[A-Za-z0-9_.]+")
_MOST_DIGITS = 9

_declared: dict[str, str] = {}
_armed: dict[str, _Trap] = {}
_hits: dict[str, int] = {}
_lock = threading.RLock()


class FailpointHit(Exception):
    """What "fail" raises: outside the error tree on purpose, so that no code expects it."""


class Arming(NamedTuple):
    """One entry of a text like "C4=kill9@3"."""

    name: str
    action: Strike
    skip: int


class _Trap:
    """What waits at one armed name; its fields are guarded by the module's lock."""

    __slots__ = ("action", "hangers", "skip", "struck", "times")

    def __init__(self, action: Action, *, skip: int, times: int | None) -> None:
        self.action = action
        self.skip = skip
        self.times = times
        self.struck = _uncancellable()
        self.hangers: list[concurrent.futures.Future[None]] = []


def declare(name: str, doc: str) -> str:
    """Make a moment known; returns its name. The same name may not stand for two moments."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"failpoint {name!r}: use letters, digits, dots and underscores only")
    with _lock:
        if _declared.setdefault(name, doc) != doc:
            raise ValueError(f"failpoint {name!r} is already declared, as {_declared[name]!r}; choose another name")
    return name


def declared() -> Mapping[str, str]:
    """All known moments: name and meaning."""
    return MappingProxyType(_declared)


def failpoint(name: str) -> None:
    """Pass this moment, in synchronous code (of any thread)."""
    if _armed:
        _strike(name)


def is_armed(name: str) -> bool:
    """Whether something waits at this moment: for code that passes it only when it does."""
    return name in _armed


async def afailpoint(name: str) -> None:
    """Pass this moment, in a coroutine: "hang" holds this coroutine alone, not its loop."""
    if _armed:
        await _astrike(name)


def arm(name: str, action: Action, *, skip: int = 0, times: int | None = 1) -> None:
    """Strike at `name`: let `skip` passes go by, then act `times` times (None: every time).

    The action is "fail" (raise FailpointHit), "kill9" or "stop" (SIGKILL or SIGSTOP to this process),
    "hang" (until `release` or disarmed), an exception to raise, or a function to call; what that returns
    is awaited if it can be. Arming a name again replaces what was there.
    """
    _require_declared(name)
    if isinstance(action, str) and action not in _STRIKES:
        raise ConfigError(f"failpoint {name!r}: unknown action {action!r}; use one of {', '.join(_STRIKES)}")
    if skip < 0 or (times is not None and times < 1):
        raise ConfigError(f"failpoint {name!r}: skip={skip} must be at least 0 and times={times} at least 1")
    with _lock:
        disarm(name)
        _hits[name] = 0
        _armed[name] = _Trap(action, skip=skip, times=times)


def disarm(name: str) -> None:
    """Remove the strike at `name`, if any, and let go whoever hangs there; its count of hits stays."""
    with _lock:
        release(name)
        trap = _armed.pop(name, None)
        if trap is not None and not trap.struck.done():
            trap.struck.set_exception(LookupError(f"failpoint {name!r} was disarmed before it struck"))


def disarm_all() -> None:
    """As if nothing had ever been armed."""
    with _lock:
        for name in list(_armed):
            disarm(name)
        _hits.clear()


@contextlib.contextmanager
def armed(name: str, action: Action, *, skip: int = 0, times: int | None = 1) -> Iterator[None]:
    """`arm` for the length of a block."""
    arm(name, action, skip=skip, times=times)
    try:
        yield
    finally:
        disarm(name)


def release(name: str) -> None:
    """Let go all that hang at `name` now; it stays armed for its remaining times."""
    with _lock:
        trap = _armed.get(name)
        if trap is not None:
            hangers, trap.hangers = trap.hangers, []
            for hanger in hangers:
                hanger.set_result(None)


def hits(name: str) -> int:
    """How often `name` was passed while it was last armed, strikes and skips alike."""
    _require_declared(name)
    return _hits.get(name, 0)


async def wait_hit(name: str) -> None:
    """Wait until the strike armed at `name` has come (for "hang": until somebody hangs there)."""
    await asyncio.wrap_future(_trap(name).struck)


def wait_hit_sync(name: str, timeout_s: float) -> None:
    """`wait_hit` for threads; raises TimeoutError."""
    try:
        _trap(name).struck.result(timeout_s)
    except TimeoutError:
        raise TimeoutError(f"failpoint {name!r} did not strike within {timeout_s:g} s") from None


def parse(spec: str) -> tuple[Arming, ...]:
    """Read "settle_jobs.committed=kill9@3;C4=fail"; `@3` strikes at the third hit."""
    armings: dict[str, Arming] = {}
    for entry in filter(None, (part.strip() for part in spec.split(";"))):
        name, _, rest = (part.strip() for part in entry.partition("="))
        text, at, nth = (part.strip() for part in rest.partition("@"))
        action = next((strike for strike in _STRIKES if strike == text), None)
        if not _NAME.fullmatch(name) or action is None:
            _refuse(entry, f"needs name=action, where action is one of {', '.join(_STRIKES)}")
        if at and not (nth.isascii() and nth.isdigit() and len(nth) <= _MOST_DIGITS and int(nth) >= 1):
            _refuse(entry, "after @ comes the number of the hit to strike at, from 1")
        if name in armings:
            _refuse(entry, f"{name} is armed twice; a name takes one action")
        armings[name] = Arming(name, action, int(nth) - 1 if at else 0)
    return tuple(armings.values())


def arm_from_text(spec: str) -> None:
    """Arm all of `spec`, or nothing if any of it is wrong."""
    armings = parse(spec)
    for name, _, _ in armings:
        _require_declared(name)
    for name, action, skip in armings:
        arm(name, action, skip=skip)


def _refuse(entry: str, why: str) -> NoReturn:
    raise ConfigError(f'failpoints: cannot read {entry!r}: {why}; for example "C4=kill9@3;R2=fail"')


def _require_declared(name: str) -> None:
    if name not in _declared:
        near = difflib.get_close_matches(name, _declared, n=3, cutoff=0.5) or sorted(_declared)[:10]
        raise ConfigError(
            f"there is no failpoint {name!r}; declared are, among others: {', '.join(near) or 'none'} "
            "(a module's failpoints are known once it is imported)"
        )


def _trap(name: str) -> _Trap:
    _require_declared(name)
    with _lock:
        if name not in _armed:
            raise LookupError(f"failpoint {name!r} is not armed: arm it before waiting for it")
        return _armed[name]


def _uncancellable() -> concurrent.futures.Future[None]:
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # one waiter's cancellation must not reach the others
    return future


def _spring(name: str) -> tuple[_Trap | None, concurrent.futures.Future[None] | None]:
    """Count this pass; returns the trap if it strikes now, and what to wait for if it hangs."""
    _require_declared(name)
    with _lock:
        trap = _armed.get(name)
        if trap is None:
            return None, None
        _hits[name] += 1
        if _hits[name] <= trap.skip or trap.times == 0:
            return None, None
        if trap.times is not None:
            trap.times -= 1
        hanger = None
        if trap.action == "hang":
            hanger = _uncancellable()
            trap.hangers.append(hanger)
        if not trap.struck.done():
            trap.struck.set_result(None)
        return trap, hanger


def _act(name: str, action: Action) -> object:
    """Do what needs no waiting; returns what the test's own function returned."""
    match action:
        case "fail":
            raise FailpointHit(name)
        # To this very thread: a signal to the process may stop another first, and let this one run on.
        case "kill9":
            signal.pthread_kill(threading.get_ident(), signal.SIGKILL)
        case "stop":
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        case "hang":
            pass
        case BaseException():
            raise action
        case type() if issubclass(action, BaseException):
            raise action(f"failpoint {name}")
        case _:
            assert callable(action)
            return action()
    return None


def _strike(name: str) -> None:
    trap, hanger = _spring(name)
    if hanger is not None:
        hanger.result()
    elif trap is not None:
        result = _act(name, trap.action)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"failpoint {name!r} is passed by synchronous code: its action cannot be awaited")


async def _astrike(name: str) -> None:
    trap, hanger = _spring(name)
    if hanger is not None:
        await asyncio.wrap_future(hanger)
    elif trap is not None:
        result = _act(name, trap.action)
        if inspect.isawaitable(result):
            await result
