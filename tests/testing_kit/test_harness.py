"""`holdfast.testing` as a user's tests meet it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.docs.subprocesses import environment

from holdfast import Breaker, Holdfast, NotOpen, QueueFull, RetryPolicy, State
from holdfast.telemetry.events import JobBuried, JobRetried, JobSettled, JobStarted
from holdfast.testing import harness


def shop() -> Holdfast:
    hf = Holdfast("sqlite:///never-made.db")

    @hf.task(name="mail", queue="mail")
    async def mail(to: str, subject: str = "hi") -> str:
        return to

    @hf.task(name="again", retry=RetryPolicy(max_attempts=3))
    async def again() -> None:
        raise ConnectionError("no answer")

    @hf.task(name="for_ever")
    def for_ever() -> None:
        hf.sync.enqueue("for_ever")

    return hf


def test_failures_say_what_was_enqueued() -> None:
    hf = shop()
    with harness(hf) as t:
        with pytest.raises(AssertionError, match=r"mail\('Ada'\) was not enqueued\. Nothing was enqueued\."):
            t.assert_enqueued("mail", "Ada")
        hf.named("mail").options(delay=5).sync.enqueue("Bob")
        with pytest.raises(
            AssertionError,
            match=r"What .* \(1\):\n  1\. mail\('Bob', subject='hi'\) queue='mail' delay=5",
        ):
            t.assert_enqueued("mail", "Ada")
        with pytest.raises(AssertionError, match=r"delay=6\.0 was not enqueued"):
            t.assert_enqueued("mail", "Bob", delay=6)
        with pytest.raises(AssertionError, match="queue='post' was not enqueued"):
            t.assert_enqueued("mail", queue="post")
        with pytest.raises(AssertionError, match="mail was enqueued"):
            t.assert_not_enqueued("mail")
        with pytest.raises(AssertionError, match="1 times, not 2"):
            t.assert_enqueued_count("mail", 2)
        assert t.assert_enqueued(hf.named("mail"), to="Bob", delay=5).kwargs == {"subject": "hi"}


def test_time_stands_still_until_it_is_moved() -> None:
    hf = shop()
    with harness(hf) as t:
        job = hf.named("mail").options(delay=60).sync.enqueue("Ada")
        assert t.run_due() == []
        t.clock.advance(60)
        [info] = t.run_due()
        assert info.state is State.SUCCEEDED
        assert job.result(timeout=10) == "Ada"


def test_until_idle_goes_through_all_retries() -> None:
    hf = shop()
    with harness(hf) as t:
        hf.sync.enqueue("again")
        [info] = t.run_until_idle()
        assert (info.state, info.attempt, info.reason) == (State.DEAD, 3, "exhausted")


@pytest.mark.parametrize("many", [False, True])
def test_a_full_queue_is_told_at_once_whoever_would_wait(many: bool) -> None:
    hf = Holdfast("sqlite:///never-made.db", high_watermark=2, low_watermark=1)

    @hf.task(name="mail")
    async def mail() -> None: ...

    async def scene() -> None:
        patient = mail.options(wait=3600)
        async with harness(hf) as t:
            await hf.enqueue_many([patient.request(), patient.request()])
            with pytest.raises(QueueFull):
                await (hf.enqueue_many([patient.request()]) if many else patient.enqueue())
            assert len(await t.run_due()) == 2
            await patient.enqueue()

    asyncio.run(asyncio.wait_for(scene(), 30))


def test_runs_are_told_as_a_workers_are() -> None:
    hf = shop()
    told: list[tuple[str, ...]] = []
    hf.telemetry.attach(
        lambda event: told.append((event.name, *([event.outcome] if isinstance(event, JobSettled) else []))),
        only=(JobStarted, JobRetried, JobBuried, JobSettled),
    )
    with harness(hf) as t:
        hf.sync.enqueue("again")
        t.run_until_idle()
    started, retried, buried = ("job.started",), ("job.retried",), ("job.buried",)
    again = [started, retried, ("job.settled", "retry")]
    assert told == [*again, *again, started, buried, ("job.settled", "dead")]


def test_a_test_that_never_becomes_idle_fails() -> None:
    hf = shop()
    with harness(hf, max_runs=5) as t:
        hf.sync.enqueue("for_ever")
        with pytest.raises(AssertionError, match=r"5 runs and still not idle.*for_ever \(6 times\)"):
            t.run_due()


def test_the_app_is_as_before_afterwards() -> None:
    hf = shop()
    with harness(hf) as t:
        assert hf.config.url == ":memory:"
        with pytest.raises(NotOpen), harness(hf):
            pass
    assert hf.config.url == "sqlite:///never-made.db"
    with pytest.raises(NotOpen):
        t.run_due()


def test_the_kit_does_not_import_pytest() -> None:
    code = "import sys, holdfast.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(), timeout=60)


def run_pytest(tests: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    installed = any(each.name == "holdfast" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "holdfast.testing.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", *plugin, "-c", str(ROOT / "examples/shop/pytest.ini")]
    return subprocess.run(
        [*command, str(tests), "-p", "no:cacheprovider", f"--basetemp={scratch / 'base'}"],
        cwd=scratch, env=environment(), capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def test_the_shops_own_tests_pass_with_the_plugin(tmp_path: Path) -> None:
    done = run_pytest(ROOT / "examples/shop", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


ASYNC_TESTS = """
from examples.shop.tasks import charge
from holdfast.testing.harness import Harness, SyncHarness


async def test_in_a_coroutine_it_is_to_be_entered(holdfast_harness: Harness) -> None:
    async with holdfast_harness as t:
        job = await charge.enqueue("Ada", 700)
        await t.run_due()
        assert await job.result(timeout=10) == "Ada paid 700"


def test_elsewhere_it_is_open(holdfast_harness: SyncHarness) -> None:
    job = charge.sync.enqueue("Ada", 700)
    holdfast_harness.run_due()
    assert job.result(timeout=10) == "Ada paid 700"
"""

#: What plugins for async tests do, as far as it matters here; this suite needs none.
ASYNC_PLUGIN = """
import asyncio
import inspect

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
"""


def test_the_fixture_is_for_coroutines_too(tmp_path: Path) -> None:
    (tmp_path / "test_async.py").write_text(ASYNC_TESTS)
    (tmp_path / "conftest.py").write_text(ASYNC_PLUGIN)
    done = run_pytest(tmp_path, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_a_breaker_opens_and_closes_on_the_harness_s_clock() -> None:
    hf = Holdfast(":memory:")
    is_down = True

    @hf.task(name="charge", breaker=Breaker("bank", failures=1, open_for=30), retry=RetryPolicy(max_attempts=1))
    async def charge() -> str:
        if is_down:
            raise ConnectionRefusedError
        return "charged"

    with harness(hf) as t:
        charge.sync.enqueue()
        t.run_due()
        is_down = False
        waits = charge.sync.enqueue()
        t.run_due()
        assert waits.info().state is State.PARKED
        t.clock.advance(31)
        t.run_due()
        assert waits.info().result == "charged"
        assert [each.phase for each in hf.sync.breakers.list()] == ["closed"]
