from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from holdfast.runtime.daemon_executor import DaemonExecutor


def test_results_and_errors_come_back() -> None:
    executor = DaemonExecutor(2)
    assert executor.submit(sum, [1, 2]).result(5) == 3
    with pytest.raises(ZeroDivisionError):
        executor.submit(lambda: 1 / 0).result(5)
    executor.shutdown()


def test_no_more_threads_than_allowed_work_at_once() -> None:
    executor, gate, inside = DaemonExecutor(2), threading.Event(), threading.Semaphore(0)

    def hold() -> str:
        inside.release()
        gate.wait(10)
        return threading.current_thread().name

    futures = [executor.submit(hold) for _ in range(5)]
    assert inside.acquire(timeout=5)
    assert inside.acquire(timeout=5)
    assert not inside.acquire(blocking=False)
    gate.set()
    assert len({future.result(5) for future in futures}) == 2
    executor.shutdown()


def test_nothing_is_taken_after_shutdown_and_nobody_waits() -> None:
    executor, gate = DaemonExecutor(1), threading.Event()
    stuck = executor.submit(gate.wait, 10)
    executor.shutdown(wait=True)
    assert not stuck.done()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)
    gate.set()
    assert stuck.result(5)


def test_an_event_loop_takes_it_as_its_default() -> None:
    async def main() -> str:
        asyncio.get_running_loop().set_default_executor(DaemonExecutor(1))
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(main()).startswith("holdfast-default-")


def test_a_stuck_call_does_not_keep_the_process() -> None:
    code = """
import asyncio, threading
from holdfast.runtime.daemon_executor import DaemonExecutor
async def main():
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
    await asyncio.sleep(0)
asyncio.run(main())
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "ended\n"


def test_two_calls_of_one_tick_that_wait_for_each_other_both_run() -> None:
    """One idle thread was counted for both of them: the second waited for the first, and that for the second."""
    for _ in range(20):
        executor, meet = DaemonExecutor(2), threading.Barrier(2, timeout=5)
        executor.submit(int).result(5)  # leaves a thread that is idle, or about to be
        both = [executor.submit(meet.wait) for _ in range(2)]
        assert {future.result(10) for future in both} == {0, 1}
        executor.shutdown()


def test_bursts_never_make_more_threads_than_allowed() -> None:
    """Counting idle threads wrongly in either direction would show here: as too many of them, or as a call unheard."""
    executor, most = DaemonExecutor(3), 3
    used: set[int] = set()
    for burst in range(300):
        futures = [executor.submit(threading.get_ident) for _ in range(1 + burst % 7)]
        used.update(future.result(5) for future in futures)
    assert len(used) <= most
    meet = threading.Barrier(most, timeout=5)
    for future in [executor.submit(meet.wait) for _ in range(most)]:
        future.result(10)
    executor.shutdown()
