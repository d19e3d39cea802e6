"""The loop of Holdfast's own processes: a task's attempt to end the process ends that task alone."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from holdfast.runtime import loop as loops
from holdfast.runtime.loop import run_loop
from holdfast.runtime.signals import stop_signals


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"], autouse=True)
def each_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "new_loop", request.param)


async def leave() -> None:
    sys.exit(3)


async def for_ever() -> None:
    await asyncio.Event().wait()


def heard() -> list[Any]:
    """What the running loop reports, in place of writing it to the log."""
    reports: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context["exception"]))
    return reports


def test_who_awaits_it_gets_the_exit_and_the_rest_goes_on() -> None:
    async def main() -> str:
        reports = heard()
        beside = asyncio.create_task(asyncio.sleep(0.01, "beside"))
        with pytest.raises(SystemExit, match="3"):
            await asyncio.create_task(leave())
        await beside
        return str([type(each).__name__ for each in reports])

    assert run_loop(main()) == "['SystemExit']"


def test_an_exit_beside_the_last_step_does_not_hide_the_result() -> None:
    async def main() -> str:
        heard()
        with pytest.raises(SystemExit):
            await asyncio.create_task(leave())
        return "done"

    assert run_loop(main()) == "done"


def test_ones_own_exit_is_the_end() -> None:
    with pytest.raises(SystemExit, match="3"):
        run_loop(leave())


def test_an_interrupt_counts_where_nobody_has_taken_over_the_signal() -> None:
    async def interrupt() -> None:
        raise KeyboardInterrupt

    async def main(around: Callable[[], Any], then: Callable[[], Any]) -> str:
        heard()
        async with around():
            with pytest.raises(KeyboardInterrupt):
                await asyncio.create_task(interrupt())
            await then()
            return "went on"

    assert run_loop(main(stop_signals, lambda: asyncio.sleep(0))) == "went on"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        run_loop(main(lambda: stop_signals(signal.SIGUSR2), for_ever))
