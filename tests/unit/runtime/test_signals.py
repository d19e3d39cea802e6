from __future__ import annotations

import asyncio
import os
import signal
import threading

from holdfast.runtime.signals import stop_signals


def kill_self(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_signals_are_counted_and_waited_for() -> None:
    async def scenario() -> None:
        async with stop_signals(signal.SIGUSR1, signal.SIGUSR2) as caught:
            assert (caught.count, caught.last) == (0, None)
            kill_self(signal.SIGUSR1)
            await caught.wait()
            kill_self(signal.SIGUSR2)
            await caught.wait(2)
            assert (caught.count, caught.last) == (2, signal.SIGUSR2)

    asyncio.run(scenario())


def test_a_signal_wakes_a_loop_that_has_nothing_else_to_do() -> None:
    async def scenario() -> None:
        async with stop_signals(signal.SIGUSR1) as caught:
            main = threading.main_thread().ident
            assert main is not None
            sender = threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGUSR1))
            waiters = [asyncio.create_task(caught.wait()) for _ in range(2)]
            asyncio.get_running_loop().call_soon(sender.start)
            await asyncio.gather(*waiters)
            sender.join()

    asyncio.run(scenario())


def test_sigint_and_sigterm_are_the_default() -> None:
    async def scenario() -> None:
        async with stop_signals() as caught:
            kill_self(signal.SIGTERM)
            await caught.wait(1)
            kill_self(signal.SIGINT)
            await caught.wait(2)

    asyncio.run(scenario())


def test_old_handlers_come_back_also_when_nested() -> None:
    async def scenario() -> None:
        before = signal.getsignal(signal.SIGUSR1)
        async with stop_signals(signal.SIGUSR1) as outer:
            async with stop_signals(signal.SIGUSR1) as inner:
                kill_self(signal.SIGUSR1)
                await inner.wait()
            kill_self(signal.SIGUSR1)
            await outer.wait()
            assert (outer.count, inner.count) == (1, 1)
        assert signal.getsignal(signal.SIGUSR1) == before

    asyncio.run(scenario())


def test_outside_the_main_thread_nothing_is_caught_and_nothing_breaks() -> None:
    counts: list[int] = []

    async def scenario() -> None:
        before = signal.getsignal(signal.SIGTERM)
        async with stop_signals() as caught:
            assert signal.getsignal(signal.SIGTERM) == before
            counts.append(caught.count)

    thread = threading.Thread(target=lambda: asyncio.run(scenario()))
    thread.start()
    thread.join()
    assert counts == [0]
