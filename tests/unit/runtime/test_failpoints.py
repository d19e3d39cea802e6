from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from holdfast.core.errors import ConfigError
from holdfast.runtime import failpoints as fp

POINT = fp.declare("test.point", "a moment of these tests")
OTHER = fp.declare("test.other", "another moment of these tests")


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    fp.disarm_all()


def test_declared_names_are_listed_with_their_meaning() -> None:
    assert fp.declared()[POINT] == "a moment of these tests"
    assert fp.declare("test.point", "a moment of these tests") == POINT


def test_a_name_cannot_stand_for_two_moments() -> None:
    with pytest.raises(ValueError, match="already declared"):
        fp.declare("test.point", "something else")


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a;b", "a@b"])
def test_names_that_the_text_form_cannot_carry_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="letters"):
        fp.declare(name, "bad")


def test_nothing_happens_while_nothing_is_armed() -> None:
    fp.failpoint(POINT)
    asyncio.run(fp.afailpoint(POINT))
    assert fp.hits(POINT) == 0


def test_fail_raises_at_the_armed_name_only_and_once() -> None:
    fp.arm(POINT, "fail")
    fp.failpoint(OTHER)
    with pytest.raises(fp.FailpointHit, match=r"test\.point"):
        fp.failpoint(POINT)
    fp.failpoint(POINT)
    assert (fp.hits(POINT), fp.hits(OTHER)) == (2, 0)


def test_fail_raises_in_a_coroutine_too() -> None:
    with fp.armed(POINT, "fail"), pytest.raises(fp.FailpointHit):
        asyncio.run(fp.afailpoint(POINT))


def strikes(passes: int) -> list[int]:
    struck = []
    for n in range(1, passes + 1):
        try:
            fp.failpoint(POINT)
        except fp.FailpointHit:
            struck.append(n)
    return struck


@pytest.mark.parametrize(
    ("skip", "times", "expected"),
    [(0, 1, [1]), (2, 1, [3]), (1, 2, [2, 3]), (0, None, [1, 2, 3, 4, 5]), (9, 1, [])],
)
def test_skip_and_times_choose_the_passes(skip: int, times: int | None, expected: list[int]) -> None:
    with fp.armed(POINT, "fail", skip=skip, times=times):
        assert strikes(5) == expected


def test_hits_are_counted_only_while_armed_and_start_over_when_armed_again() -> None:
    with fp.armed(POINT, "fail", skip=9):
        fp.failpoint(POINT)
        fp.failpoint(POINT)
    fp.failpoint(POINT)
    assert fp.hits(POINT) == 2
    fp.arm(POINT, "fail")
    assert fp.hits(POINT) == 0


def test_an_armed_block_is_disarmed_when_it_fails() -> None:
    with pytest.raises(fp.FailpointHit), fp.armed(POINT, "fail", times=None):
        fp.failpoint(POINT)
    fp.failpoint(POINT)


@pytest.mark.parametrize("error", [OSError("disk"), OSError])
def test_exceptions_are_raised(error: OSError | type[OSError]) -> None:
    fp.arm(POINT, error, times=2)
    with pytest.raises(OSError):  # noqa: PT011
        fp.failpoint(POINT)
    with pytest.raises(OSError):  # noqa: PT011
        asyncio.run(fp.afailpoint(POINT))


def test_functions_are_called_and_awaited_where_possible() -> None:
    log: list[str] = []

    async def interleave() -> None:
        await asyncio.sleep(0)
        log.append("awaited")

    fp.arm(POINT, lambda: log.append("called"), times=2)
    fp.failpoint(POINT)
    asyncio.run(fp.afailpoint(POINT))
    fp.arm(POINT, interleave)
    asyncio.run(fp.afailpoint(POINT))
    assert log == ["called", "called", "awaited"]


def test_synchronous_code_says_that_it_cannot_await() -> None:
    async def interleave() -> None:
        pass

    fp.arm(POINT, interleave)
    with pytest.raises(TypeError, match="synchronous"):
        fp.failpoint(POINT)


def test_a_hanging_thread_goes_on_when_released() -> None:
    fp.arm(POINT, "hang")
    thread = threading.Thread(target=fp.failpoint, args=(POINT,))
    thread.start()
    fp.wait_hit_sync(POINT, 30)
    assert thread.is_alive()
    fp.release(POINT)
    thread.join(30)
    assert not thread.is_alive()


def test_a_hanging_coroutine_holds_up_neither_its_loop_nor_itself_after_disarming() -> None:
    async def scenario() -> None:
        fp.arm(POINT, "hang", times=2)
        hanging = [asyncio.create_task(fp.afailpoint(POINT)) for _ in range(2)]
        await fp.wait_hit(POINT)
        done, _ = await asyncio.wait(hanging, timeout=0)
        assert not done
        fp.disarm(POINT)
        await asyncio.gather(*hanging)

    asyncio.run(scenario())


def test_a_hanging_coroutine_can_be_cancelled() -> None:
    async def scenario() -> None:
        fp.arm(POINT, "hang")
        hanging = asyncio.create_task(fp.afailpoint(POINT))
        await fp.wait_hit(POINT)
        hanging.cancel()
        await asyncio.wait({hanging})
        assert hanging.cancelled()
        fp.release(POINT)

    asyncio.run(scenario())


def test_release_lets_go_those_who_hang_now_not_those_who_come_later() -> None:
    async def scenario() -> None:
        fp.arm(POINT, "hang", times=2)
        first = asyncio.create_task(fp.afailpoint(POINT))
        await fp.wait_hit(POINT)
        fp.release(POINT)
        await first
        second = asyncio.create_task(fp.afailpoint(POINT))
        done, _ = await asyncio.wait({second}, timeout=0)
        assert not done
        fp.release(POINT)
        await second

    asyncio.run(scenario())


def test_a_coroutine_can_wait_for_a_thread_to_hang_and_one_waiters_cancellation_hurts_no_other() -> None:
    async def scenario() -> None:
        fp.arm(POINT, "hang", skip=1)
        waiters = [asyncio.create_task(fp.wait_hit(POINT)) for _ in range(2)]
        await asyncio.wait(waiters, timeout=0)
        waiters[0].cancel()
        fp.failpoint(POINT)
        thread = threading.Thread(target=fp.failpoint, args=(POINT,))
        thread.start()
        await waiters[1]
        assert fp.hits(POINT) == 2
        fp.release(POINT)
        thread.join(30)

    asyncio.run(scenario())


def test_waiting_for_what_cannot_come_is_an_error() -> None:
    with pytest.raises(LookupError, match="not armed"):
        fp.wait_hit_sync(POINT, 30)
    fp.arm(POINT, "hang")
    with pytest.raises(TimeoutError, match="did not strike"):
        fp.wait_hit_sync(POINT, 0)

    async def scenario() -> None:
        waiting = asyncio.create_task(fp.wait_hit(POINT))
        await asyncio.wait({waiting}, timeout=0)
        fp.disarm_all()
        with pytest.raises(LookupError, match="disarmed before"):
            await waiting

    asyncio.run(scenario())


def test_of_many_threads_exactly_as_many_strike_as_asked() -> None:
    fp.arm(POINT, "fail", skip=10, times=7)
    struck: list[int] = []
    threads = [threading.Thread(target=lambda: struck.extend(strikes(50))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(struck), fp.hits(POINT)) == (7, 400)


def test_unknown_names_are_refused_with_near_ones() -> None:
    with pytest.raises(ConfigError, match=r"no failpoint 'test\.piont'.*test\.point"):
        fp.arm("test.piont", "fail")
    with pytest.raises(ConfigError, match="no failpoint"):
        fp.hits("nonsense")
    fp.arm(OTHER, "fail")
    with pytest.raises(ConfigError, match="no failpoint"):
        fp.failpoint("test.piont")


def test_senseless_armings_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown action 'explode'"):
        fp.arm(POINT, "explode")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="skip=-1"):
        fp.arm(POINT, "fail", skip=-1)
    with pytest.raises(ConfigError, match="times=0"):
        fp.arm(POINT, "fail", times=0)


def test_the_text_form_is_read() -> None:
    assert fp.parse(" settle_jobs.committed=kill9@3 ; C4=fail;") == (
        fp.Arming("settle_jobs.committed", "kill9", 2),
        fp.Arming("C4", "fail", 0),
    )
    assert fp.parse("") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C4", "needs name=action"),
        ("C4=", "needs name=action"),
        ("=fail", "needs name=action"),
        ("C4=explode", "one of fail, kill9, stop, hang"),
        ("C4=fail@0", "number of the hit"),
        ("C4=fail@", "number of the hit"),
        ("C4=fail@x", "number of the hit"),
        ("C4=fail@²", "number of the hit"),
        ("C4=fail;C4=hang", "armed twice"),
    ],
)
def test_bad_text_gets_a_clear_sentence(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        fp.parse(text)


def test_arming_from_text_is_all_or_nothing() -> None:
    with pytest.raises(ConfigError, match="no failpoint 'unheard'"):
        fp.arm_from_text("test.point=fail;unheard=fail")
    fp.failpoint(POINT)
    fp.arm_from_text("test.point=fail@2")
    assert strikes(3) == [2]


PROGRAM = """
import sys, threading
from holdfast.runtime import failpoints as fp
fp.declare("P", "here")
fp.arm_from_text(sys.argv[1])
def passes():
    print("before", flush=True)
    fp.failpoint("P")
    print("after", flush=True)
thread = threading.Thread(target=passes)
thread.start()
thread.join()
"""


def test_kill9_ends_the_process_there_and_then() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, "P=kill9"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "before\n")


def test_stop_freezes_the_process_until_it_is_continued() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, "P=stop"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert process.stdout.readline() == "before\n"
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == "after\n"
    assert process.returncode == 0
