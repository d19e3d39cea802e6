from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.runtime.service import Service

FOR_EVER = 3600.0


class Recorder(Service):
    """Writes down what happens to it; `gate` holds up on_start until set."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()

    async def on_start(self) -> None:
        self.log.append("start")
        self.entered.set()
        await self.gate.wait()

    async def run(self) -> None:
        self.log.append("run")
        while await self.pause(FOR_EVER):
            self.log.append("turn")

    async def on_stop(self) -> None:
        self.log.append("stop")


class Crashing(Recorder):
    def __init__(self, error: BaseException, **options: Any) -> None:
        super().__init__(**options)
        self.error = error

    async def run(self) -> None:
        raise self.error


def test_start_run_stop_in_order() -> None:
    async def scenario() -> None:
        service = Recorder()
        async with service:
            assert service.running
        assert service.log == ["start", "run", "stop"]
        assert not service.running
        assert not service.failed

    asyncio.run(scenario())


def test_double_start_and_double_stop_do_their_work_once() -> None:
    async def scenario() -> None:
        service = Recorder()
        await asyncio.gather(service.start(), service.start())
        await service.start()
        await asyncio.gather(service.stop(), service.stop(), service.stop())
        await service.stop()
        assert (service.log.count("start"), service.log.count("stop")) == (1, 1)

    asyncio.run(scenario())


def test_a_second_start_waits_for_the_first() -> None:
    async def scenario() -> None:
        service = Recorder()
        service.gate.clear()
        first = asyncio.create_task(service.start())
        await service.entered.wait()
        second = asyncio.create_task(service.start())
        done, _ = await asyncio.wait({second}, timeout=0)
        assert not done
        service.gate.set()
        await asyncio.gather(first, second)
        await service.stop()

    asyncio.run(scenario())


def test_start_after_stop_does_nothing() -> None:
    async def scenario() -> None:
        never_started = Recorder()
        await never_started.stop()
        await never_started.start()
        assert never_started.log == []
        assert await never_started.wait_ended() is None

        used = Recorder()
        await used.start()
        await used.stop()
        before = list(used.log)
        await used.start()
        assert used.log == before

    asyncio.run(scenario())


def test_every_stop_waits_for_the_end() -> None:
    class Slow(Recorder):
        async def on_stop(self) -> None:
            self.entered.clear()
            await self.gate.wait()

    async def scenario() -> None:
        service = Slow()
        await service.start()
        service.gate.clear()
        stops = {asyncio.create_task(service.stop()) for _ in range(3)}
        done, _ = await asyncio.wait(stops, timeout=0)
        assert not done
        service.gate.set()
        await asyncio.gather(*stops)
        assert not service.running

    asyncio.run(scenario())


def test_a_cancelled_stop_cancels_neither_the_service_nor_other_stops() -> None:
    class Slow(Recorder):
        async def on_stop(self) -> None:
            await self.gate.wait()
            self.log.append("stopped")

    async def scenario() -> None:
        service = Slow()
        await service.start()
        service.gate.clear()
        impatient, patient = asyncio.create_task(service.stop()), asyncio.create_task(service.stop())
        await asyncio.wait({patient}, timeout=0)
        impatient.cancel()
        await asyncio.wait({impatient})
        service.gate.set()
        await patient
        assert service.log[-1] == "stopped"

    asyncio.run(scenario())


def test_stop_while_starting_skips_run_but_not_on_stop() -> None:
    async def scenario() -> None:
        service = Recorder()
        service.gate.clear()
        starting = asyncio.create_task(service.start())
        await service.entered.wait()
        stopping = asyncio.create_task(service.stop())
        await service.stopping.wait()
        service.gate.set()
        await asyncio.gather(starting, stopping)
        assert service.log == ["start", "stop"]

    asyncio.run(scenario())


def test_a_cancelled_start_asks_the_service_to_stop() -> None:
    async def scenario() -> None:
        service = Recorder()
        service.gate.clear()
        starting = asyncio.create_task(service.start())
        await service.entered.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        service.gate.set()
        assert await service.wait_ended() is None
        assert service.log == ["start", "stop"]

    asyncio.run(scenario())


def test_an_error_while_starting_goes_to_every_starter() -> None:
    class Broken(Recorder):
        async def on_start(self) -> None:
            raise OSError("no such port")

    async def scenario() -> None:
        service = Broken()
        answers = await asyncio.gather(service.start(), service.start(), return_exceptions=True)
        assert [str(answer) for answer in answers] == ["no such port"] * 2
        await service.stop()
        assert service.failed
        assert service.log == []

    asyncio.run(scenario())


def test_a_crash_is_kept_and_told_once_and_stop_does_not_raise_it() -> None:
    async def scenario() -> None:
        told: list[tuple[Service, BaseException]] = []
        error = ValueError("boom")
        service = Crashing(error, on_crash=lambda who, exc: told.append((who, exc)))
        await service.start()
        assert await service.wait_ended() is error
        await service.stop()
        assert told == [(service, error)]
        assert service.failed
        assert service.log == ["start", "stop"]

    asyncio.run(scenario())


def test_a_crash_that_nobody_listens_to_reaches_the_loops_handler() -> None:
    async def scenario() -> None:
        contexts: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
        error = ValueError("boom")
        service = Crashing(error, name="reaper")
        await service.start()
        await service.stop()
        assert [(context["message"], context["exception"]) for context in contexts] == [
            ("service 'reaper' crashed", error)
        ]

    asyncio.run(scenario())


def test_a_crash_listener_that_crashes_is_reported_and_harms_nothing() -> None:
    async def scenario() -> None:
        contexts: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: contexts.append(context))
        service = Crashing(ValueError("boom"), on_crash=lambda who, exc: 1 / 0)
        await service.start()
        await service.stop()
        assert [type(context["exception"]) for context in contexts] == [ZeroDivisionError]
        assert service.log[-1] == "stop"

    asyncio.run(scenario())


def test_an_error_while_stopping_is_a_crash_too() -> None:
    class Broken(Recorder):
        async def on_stop(self) -> None:
            raise OSError("cannot close")

    async def scenario() -> None:
        told: list[str] = []
        service = Broken(on_crash=lambda who, exc: told.append(str(exc)))
        await service.start()
        await service.stop()
        assert told == ["cannot close"]

    asyncio.run(scenario())


def test_a_cancelled_error_that_nobody_asked_for_is_a_crash() -> None:
    async def scenario() -> None:
        service = Crashing(asyncio.CancelledError(), on_crash=lambda who, exc: None)
        await service.start()
        assert isinstance(await service.wait_ended(), asyncio.CancelledError)

    asyncio.run(scenario())


def test_a_run_that_ends_by_itself_is_tidied_up_at_once() -> None:
    class Brief(Recorder):
        async def run(self) -> None:
            self.log.append("run")

    async def scenario() -> None:
        service = Brief()
        await service.start()
        assert await service.wait_ended() is None
        assert service.log == ["start", "run", "stop"]
        await service.stop()

    asyncio.run(scenario())


def test_run_may_stop_its_own_service() -> None:
    class Suicidal(Recorder):
        async def run(self) -> None:
            await self.stop()
            self.log.append("asked")

    async def scenario() -> None:
        service = Suicidal()
        await service.start()
        await service.wait_ended()
        assert service.log == ["start", "asked", "stop"]

    asyncio.run(scenario())


def test_what_does_not_end_in_time_is_cancelled_and_is_no_crash() -> None:
    class Deaf(Recorder):
        async def run(self) -> None:
            await asyncio.Event().wait()

        async def on_stop(self) -> None:
            task = asyncio.current_task()
            assert task is not None
            self.log.append(f"stopping, {task.cancelling()} cancellations pending")
            await asyncio.Event().wait()

    async def scenario() -> None:
        service = Deaf(stop_timeout_s=0.01)
        await service.start()
        await service.stop()
        assert service.failure is None
        assert service.log == ["start", "stopping, 0 cancellations pending"]

    asyncio.run(scenario())


def test_a_start_that_does_not_end_is_cancelled_by_stop_as_well() -> None:
    async def scenario() -> None:
        service = Recorder(stop_timeout_s=0.001)
        service.gate.clear()
        starting = asyncio.create_task(service.start())
        await service.entered.wait()
        await service.stop()
        await starting
        assert service.log == ["start"]
        assert not service.failed

    asyncio.run(scenario())


def test_a_shut_down_of_the_loop_still_runs_on_stop() -> None:
    service: list[Recorder] = []

    async def scenario() -> None:
        service.append(Recorder())
        await service[0].start()

    asyncio.run(scenario())
    assert service[0].log[-1] == "stop"
    assert not service[0].failed
    assert not service[0].running


def test_a_wake_before_the_pause_is_not_lost() -> None:
    async def scenario() -> None:
        service = Service()
        service.wake()
        assert await service.pause(FOR_EVER)

    asyncio.run(scenario())


def test_a_wake_ends_one_pause_only() -> None:
    async def scenario() -> None:
        service = Service()
        service.wake()
        assert await service.pause(FOR_EVER)
        pausing = asyncio.create_task(service.pause(FOR_EVER))
        done, _ = await asyncio.wait({pausing}, timeout=0)
        assert not done
        service.wake()
        assert await pausing

    asyncio.run(scenario())


def test_a_pause_ends_when_its_time_has_passed() -> None:
    async def scenario() -> None:
        service = Service()
        assert await service.pause(0.001)
        assert await service.pause(0)

    asyncio.run(scenario())


def test_stop_ends_every_pause_and_refuses_further_ones() -> None:
    async def scenario() -> None:
        service = Service()
        pauses = [asyncio.create_task(service.pause(FOR_EVER)) for _ in range(3)]
        await asyncio.wait(pauses, timeout=0)
        await service.stop()
        assert await asyncio.gather(*pauses) == [False, False, False]
        assert not await service.pause(FOR_EVER)

    asyncio.run(scenario())


def test_a_service_that_is_woken_all_the_time_leaves_the_loop_to_others() -> None:
    async def scenario() -> None:
        service = Service()
        others_turn = asyncio.Event()
        asyncio.get_running_loop().call_soon(others_turn.set)
        service.wake()
        await service.pause(FOR_EVER)
        assert others_turn.is_set()

    asyncio.run(scenario())
