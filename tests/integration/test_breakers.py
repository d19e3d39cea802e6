"""Circuit breakers: they open after failures, their jobs wait without attempts, a probe closes them; and by hand."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, Heard, scene, until

from holdfast import Breaker, ErrorClass, Holdfast, InvalidOptions, PermanentError, RetryPolicy
from holdfast.core.blame import failed
from holdfast.core.breaker import BreakerFigures, Phase
from holdfast.core.error_classes import ErrorClasses
from holdfast.core.errors import HardTimeout, RetryLater, SoftTimeout
from holdfast.core.outcome import CancelHonoured, Failed, Interrupted, Outcome, Rejected, Succeeded, TimedOut
from holdfast.core.state import State
from holdfast.telemetry.flow_events import BreakerClosed, BreakerOpened

ONCE = RetryPolicy(max_attempts=1)


@scene
async def test_it_opens_after_failures_and_a_probe_closes_it() -> None:
    hf = Holdfast(":memory:")
    is_down = True

    @hf.task(breaker=Breaker("bank", failures=2, open_for=0.2), retry=ONCE)
    async def charge() -> str:
        if is_down:
            raise ConnectionRefusedError
        return "charged"

    async with hf:
        heard = Heard(hf, BreakerOpened, BreakerClosed)
        async with hf.worker(concurrency=1):
            for _ in range(2):
                await until(await charge.enqueue(), State.DEAD)
            opened = await heard.next(BreakerOpened)
            assert opened.breaker == "bank"
            assert 0 < opened.for_s <= 0.2
            is_down = False
            waiting = [await charge.enqueue() for _ in range(3)]
            assert [await job.result(timeout=PATIENCE_S) for job in waiting] == ["charged"] * 3
            assert [(await job.info()).attempt for job in waiting] == [1, 1, 1]
            assert (await heard.next(BreakerClosed)).breaker == "bank"
            [breaker] = await hf.breakers.list()
            assert (breaker.name, breaker.phase, breaker.waiting) == ("bank", Phase.CLOSED, 0)


@scene
async def test_an_operator_holds_it_open_and_closes_it() -> None:
    hf = Holdfast(":memory:")

    @hf.task(breaker=Breaker("bank"))
    async def charge() -> str:
        return "charged"

    @hf.task
    async def ping() -> str:
        return "pong"

    async with hf, hf.worker():
        assert [(each.name, each.phase) for each in await hf.breakers.list()] == [("bank", Phase.CLOSED)]
        await hf.breakers.open("bank", by="ada")
        job = await charge.enqueue()
        info = await until(job, State.PARKED)
        assert (info.reason, info.waits_at, info.attempt) == ("breaker", "bank", 0)
        [breaker] = await hf.breakers.list()
        assert (breaker.phase, breaker.state.held, breaker.waiting) == (Phase.OPEN, True, 1)
        assert await (await ping.enqueue()).result(timeout=PATIENCE_S) == "pong"
        await hf.breakers.close("bank", by="ada")
        assert await job.result(timeout=PATIENCE_S) == "charged"
        assert [(each.what, each.name, each.by) for each in await hf.audit.list()] == [("breaker", "bank", "ada")] * 2


@scene
async def test_errors_of_the_task_itself_say_nothing() -> None:
    hf = Holdfast(":memory:")

    @hf.task(breaker=Breaker("bank", failures=1, open_for=3600), retry=ONCE)
    async def charge(error: str) -> None:
        raise {"bug": ValueError(), "permanent": PermanentError(), "down": ConnectionRefusedError()}[error]

    async with hf, hf.worker():
        for error in ("bug", "permanent"):
            await until(await charge.enqueue(error), State.DEAD)
        assert [each.phase for each in await hf.breakers.list()] == [Phase.CLOSED]
        await until(await charge.enqueue("down"), State.DEAD)
        assert [each.phase for each in await hf.breakers.list()] == [Phase.OPEN]


class Teapot(Exception):
    pass


OWN = ErrorClasses([ErrorClass(name="own", then="backoff", exceptions=[Teapot], breaker=True)])


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Succeeded(None), False),
        (Failed(ConnectionRefusedError()), True),
        (Failed(TimeoutError()), True),
        (Failed(SoftTimeout()), True),
        (TimedOut(5.0), True),
        (Failed(Teapot()), True),
        (Failed(ValueError()), None),
        (Failed(RetryLater(after=1)), None),
        (Failed(PermanentError()), None),
        (Rejected("bad_payload", ValueError()), None),
        (CancelHonoured(""), None),
        (Interrupted(""), None),
    ],
)
def test_by_default_the_table_of_errors_says_what_counts(outcome: Outcome, expected: bool | None) -> None:
    assert failed(outcome, Breaker("b"), OWN) is expected


@pytest.mark.parametrize(
    ("on", "error", "expected"),
    [
        (ValueError, UnicodeError(), True),
        (["ValueError"], ValueError(), True),
        ([PermanentError, "RetryLater"], RetryLater(after=1), True),
        ([HardTimeout], TimeoutError(), None),
        ([ValueError], ConnectionRefusedError(), None),
    ],
)
def test_a_breaker_that_names_exceptions_counts_these_alone(on: Any, error: Exception, expected: bool | None) -> None:
    assert failed(Failed(error), Breaker("b", on=on), ErrorClasses()) is expected
    assert failed(TimedOut(1.0), Breaker("b", on=[HardTimeout]), ErrorClasses()) is True


@scene
async def test_a_hard_limit_counts() -> None:
    hf = Holdfast(":memory:")

    @hf.task(breaker=Breaker("bank", failures=1, open_for=3600), timeout=0.05, retry=ONCE)
    async def charge() -> None:
        await asyncio.Event().wait()

    async with hf:
        heard = Heard(hf, BreakerOpened)
        async with hf.worker():
            await until(await charge.enqueue(), State.DEAD)
            assert (await heard.next(BreakerOpened)).breaker == "bank"


@scene
async def test_operators_say_how_it_counts_and_the_code_again() -> None:
    hf = Holdfast(":memory:")

    @hf.task(breaker=Breaker("bank", failures=2, window=60, open_for=30), retry=ONCE)
    async def charge() -> None:
        raise ConnectionRefusedError

    async def phase_after_one() -> Phase:
        await until(await charge.enqueue(), State.DEAD)
        return (await hf.breakers.list())[0].phase

    async with hf, hf.worker(concurrency=1):
        [bank] = await hf.breakers.list()
        assert (bank.figures, bank.said_by) == (BreakerFigures(2, 60.0, 30.0), "code")
        await hf.breakers.set("bank", failures=4, by="ada")
        await hf.breakers.set("bank", open_for=timedelta(minutes=5), by="bob")
        [bank] = await hf.breakers.list()
        assert (bank.figures, bank.said_by) == (BreakerFigures(4, 60.0, 300.0), "operator")
        assert [await phase_after_one() for _ in range(3)] == [Phase.CLOSED] * 3
        assert await hf.breakers.clear("bank", by="ada")
        assert not await hf.breakers.clear("bank"), "nothing is set any more"
        assert await phase_after_one() is Phase.OPEN, "two are enough again, and more have failed"
        [cleared, second, first] = await hf.audit.list()
        assert (first.by, first.before, first.after) == ("ada", None, {"failures": 4})
        assert (second.by, second.after) == ("bob", {"failures": 4, "open_for_s": 300.0})
        assert (cleared.what, cleared.name, cleared.before, cleared.after) == ("breaker", "bank", second.after, None)


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({}, "breaker 'bank': nothing was given; give failures=, window= or open_for=, or clear it"),
        ({"failures": 0}, "Breaker 'bank': failures=0 must be a whole number from 1 to 1,000"),
        ({"failures": True}, "Breaker 'bank': failures=True must be"),
        ({"window": 0}, "Breaker 'bank': window=0: needs to be from 0.001 seconds to ten years"),
        ({"window": float("nan")}, "Breaker 'bank': window=nan: needs"),
        ({"open_for": float("inf")}, "Breaker 'bank': open_for=inf: needs"),
        ({"open_for": "5"}, "Breaker 'bank': open_for='5': needs seconds or a timedelta, not str"),
    ],
)
@scene
async def test_figures_that_make_no_sense_are_refused(figures: dict[str, Any], sentence: str) -> None:
    hf = Holdfast(":memory:")
    async with hf:
        with pytest.raises(InvalidOptions) as refused:
            await hf.breakers.set("bank", **figures)
        assert str(refused.value).startswith(sentence)
        assert await hf.breakers.list() == []
