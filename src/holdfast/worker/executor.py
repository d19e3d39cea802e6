"""Runs ONE job: resolve → decode → (middleware → provide →) call → encode, and says what happened as one outcome."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, assert_never

from pydantic_core import from_json

from holdfast.client.arguments import Signature
from holdfast.config import Config
from holdfast.core import blame
from holdfast.core.breaker import BreakerMark
from holdfast.core.error_classes import BUILT_IN_CLASSES, ErrorClasses
from holdfast.core.errors import InvalidArguments
from holdfast.core.job import ClaimedJob
from holdfast.core.limit_options import Breaker
from holdfast.core.options import limit_s
from holdfast.core.outcome import (
    CancelHonoured,
    Failed,
    Interrupted,
    Outcome,
    Rejected,
    Succeeded,
    TimedOut,
    Unknown,
    describe,
)
from holdfast.core.overdue import Verdicts
from holdfast.core.retry import RetryPolicy
from holdfast.core.settlement import Settlement, decide
from holdfast.core.task import Registry, TaskDefinition
from holdfast.runtime.failpoints import afailpoint, declare, is_armed
from holdfast.runtime.thread_interrupts import ThreadCall
from holdfast.runtime.threads import ThreadPool
from holdfast.stores.base import Store
from holdfast.telemetry.events import JobErrorIgnored
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.context import CurrentJob, enter_job
from holdfast.worker.hard_limit import HardLimits
from holdfast.worker.isolation.running import IsolatedRuns
from holdfast.worker.middleware import Middleware, surrounded
from holdfast.worker.providers import Providers
from holdfast.worker.run import Interruption, Run
from holdfast.worker.soft_limit import SoftLimited
from holdfast.worker.supervision.board import Board
from holdfast.worker.supervision.watching import Terms
from holdfast.worker.thread_strikes import ThreadStrikes

C4 = declare("C4", "claimed, user code not started")
R2 = declare("R2", "user code has ended, its outcome is not written")

_UNKNOWN_POLICY = RetryPolicy()


class Plan(NamedTuple):
    """How a job is to be run: its task's options, changed by its call's."""

    task: TaskDefinition
    signature: Signature
    encode_result: Callable[[Any], bytes]
    policy: RetryPolicy
    soft_s: float | None
    hard_s: float | None
    terms: Terms
    """What the board says of it."""

    def under(self, policy: RetryPolicy) -> Plan:
        """The same under another policy."""
        return self._replace(policy=policy, terms=self.terms.under(policy))

    def limited(self, hard_s: float | None) -> Plan:
        """The same with another hard limit."""
        return self._replace(hard_s=hard_s, terms=self.terms.limited(_at_once(self.task, hard_s)))


class Executor:
    """Stateless but for the compiled signatures; one serves all runs of a worker."""

    def __init__(
        self,
        registry: Registry,
        store: Store,
        config: Config,
        *,
        threads: ThreadPool,
        telemetry: Telemetry,
        providers: Providers,
        middleware: Sequence[Middleware] = (),
        errors: ErrorClasses = BUILT_IN_CLASSES,
        board: Board | None = None,
        isolated: IsolatedRuns | None = None,
        rng: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._store = store
        self._config = config
        self._threads = threads
        self._telemetry = telemetry
        self._providers = providers
        self._middleware = tuple(middleware)
        self._board = board
        self._isolated = isolated
        self._errors = errors
        self._rng = rng
        self._now = now
        self._plans: dict[str, Plan] = {}
        self._limits = HardLimits(telemetry)

    async def execute(self, run: Run) -> Settlement | None:
        """One run, from claim to what is to be written; None when it is written already, or may not be."""
        job = run.job
        policy = _UNKNOWN_POLICY
        plan: Plan | None = None
        if is_armed(C4):  # asked first: a coroutine of its own for every run would cost
            await afailpoint(C4)
        try:
            plan = self._plan(job)
            # Its arguments are decoded where it runs: a validator is the user's code, and may crash as well.
            elsewhere = self._isolated if plan is not None and plan.task.options.isolate else None
            call = None if plan is None or elsewhere else plan.signature.decode(job.payload or b"")
        except Exception as error:  # a validator is the user's code, and may raise anything
            outcome: Outcome = Rejected("bad_payload", error)
        else:
            if plan is not None and elsewhere is not None:
                policy = plan.policy
                answer = await elsewhere.execute(run, plan.hard_s)
                if not isinstance(answer, Outcome):
                    self._mark(run, plan)
                    return answer  # decided over there, by the same rules
                outcome = answer
            elif plan is None or call is None:
                outcome = Unknown(job.task or "")
            else:
                policy = plan.policy
                outcome = await self._call(run, plan, *call)
        if is_armed(R2):
            await afailpoint(R2)
        if run.finished and isinstance(outcome, Failed):
            raised = describe(outcome.exception)
            self._telemetry.emit(JobErrorIgnored(job.id, job.task or "", f"{raised.type}: {raised.message}"))
        if plan is not None and (breaker := plan.task.options.breaker) is not None:
            run.failed = False if run.finished else blame.failed(outcome, breaker, self._errors)
            self._mark(run, plan)
        if run.finished or run.interruption is Interruption.LEASE_LOST:
            return None
        try:
            return self._decide(job, policy, outcome)
        except Exception as error:  # an exception of the user's that is not what its class promises
            return self._decide(job, policy, Failed(error))

    def _decide(self, job: ClaimedJob, policy: RetryPolicy, outcome: Outcome) -> Settlement:
        return decide(
            outcome,
            job_id=job.id,
            token=job.token,
            attempt=job.attempt,
            policy=policy,
            rng=self._rng,
            now=self._now,
            classes=self._errors,
        )

    def _mark(self, run: Run, plan: Plan) -> None:
        """What the run says goes to the breaker of its task, as the code here has it."""
        breaker = plan.task.options.breaker
        if breaker is not None and run.failed is not None:
            run.mark = BreakerMark(run.job.token, run.failed, breaker.gate)

    def _is_blamed(self, breaker: Breaker | None) -> bool:
        """Whether a run that is killed at its hard limit, with all that could tell of it, says something about it."""
        return breaker is not None and blame.failed(TimedOut(0.0), breaker, self._errors) is True

    def _plan(self, job: ClaimedJob) -> Plan | None:
        """The task and the options that hold for this job; None for an unknown task."""
        plan = self._plans.get(job.task or "")
        if plan is None:
            task = self._registry.get(job.task or "")
            if task is None:
                return None
            options = task.options
            signature = Signature(task)
            encode_result = partial(signature.encode_result, limit=self._config.result_limit)
            soft_s, hard_s = options.soft_timeout_s, options.timeout_s
            verdicts = Verdicts(options.retry, self._errors)
            terms = Terms(task.name, verdicts, _at_once(task, hard_s), blames=self._is_blamed(options.breaker))
            plan = Plan(task, signature, encode_result, options.retry, soft_s, hard_s, terms)
            self._plans[task.name] = plan
        if job.options is not None:
            plan = _overridden(plan, job.options)
        if job.max_attempts is not None and job.max_attempts != plan.policy.max_attempts:
            plan = plan.under(replace(plan.policy, max_attempts=job.max_attempts))
        return plan

    async def _call(self, run: Run, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        """Call the task under its limits and classify what came of it."""
        task = plan.task
        current = CurrentJob(run, self._store, asyncio.get_running_loop(), encode_result=plan.encode_result)
        enter_job(current)
        if run.interruption is not None:
            return self._interrupted(run, plan, None)
        board = self._board
        if board is not None:  # from here on, the death of this process may be the run's doing
            now_s, job, terms = time.monotonic(), run.job, plan.terms
            run.row = board.begin(job.token, job.id, now_s, terms.of(job.attempt), now_s + terms.limit_s)
        run.user_code = run.task
        try:
            if task.is_async:
                self._limits.start(run, plan.hard_s)
            if self._middleware:
                innermost = partial(self._call_provided, run, plan, args, kwargs)
                value = await surrounded(self._middleware, current, innermost)
            elif task.provided:
                value = await self._call_provided(run, plan, args, kwargs)
            elif task.is_async and plan.soft_s is None:  # the ordinary task, without a coroutine of ours around it
                value = await task.function(*args, **kwargs)
            else:
                value = await self._call_function(run, plan, args, kwargs)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError | GeneratorExit) and _is_torn_down(run):
                raise
            return self._interrupted(run, plan, error)
        finally:
            run.user_code = None
            self._limits.end(run)
            if board is not None:
                board.end(run.row)  # whatever kills this process from here on was not this run
        # Whoever returns a value has done the work, also when it was asked to stop meanwhile.
        try:
            return Succeeded(plan.encode_result(value))
        except Exception as error:  # a serialiser is the user's code, and may raise anything
            return Rejected("bad_result", error)

    async def _call_provided(self, run: Run, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make what the task is provided with, call it, and close what was made for this run alone."""
        if not plan.task.provided:
            return await self._call_function(run, plan, args, kwargs)
        async with self._providers.for_run(run) as scope:
            made = {name: await scope.get(need) for name, need in plan.task.provided.items()}
            return await self._call_function(run, plan, args, {**kwargs, **made})

    async def _call_function(self, run: Run, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The task's own code; the soft limit is for this alone."""
        if not plan.task.is_async:
            return await self._call_in_thread(run, plan, args, kwargs)
        coroutine = plan.task.function(*args, **kwargs)
        if plan.soft_s is None or run.task is None:
            return await coroutine
        limited = SoftLimited(coroutine, run.task, outranked=lambda: run.interruption is not None)
        timer = asyncio.get_running_loop().call_later(plan.soft_s, limited.strike, plan.soft_s)
        try:
            return await limited
        finally:
            timer.cancel()

    async def _call_in_thread(self, run: Run, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        def begin() -> None:
            run.thread, run.in_thread = threading.get_ident(), True
            if run.interruption is not None:
                raise _NotStarted
            # The limits count from here: waiting for a thread is not the task's doing.
            if plan.hard_s is not None:
                if board is not None:  # from this thread: the loop may be blocked for as long as the limit lasts
                    overdue_s, verdict = time.monotonic() + plan.hard_s, plan.terms.verdicts.of(run.job.attempt)
                    blames = plan.terms.blames
                    board.limit(run.row, overdue_s=overdue_s, limit_s=plan.hard_s, verdict=verdict, blames=blames)
                loop.call_soon_threadsafe(self._limits.start, run, plan.hard_s)
            strikes.start_from_thread(plan.soft_s)

        def lingers() -> bool:
            """A middleware, say, had no more patience: the run is not over while its function goes on."""
            if run.interruption is not None or not run.in_thread or _is_torn_down(run):
                return False
            strikes.cancel()
            return True

        loop, board = asyncio.get_running_loop(), self._board
        # As a `partial`: a function of ours around the task's could be interrupted when that has returned.
        call = ThreadCall(partial(plan.task.function, *args, **kwargs), begin=begin)
        strikes = ThreadStrikes(run, call, loop)
        # All threads may hang. Then what waits for one is given back, so that another worker can have it.
        waiting = plan.hard_s and loop.call_later(plan.hard_s, _give_up_waiting, run)
        try:
            return await self._threads.run(call, lingers=lingers)
        finally:
            strikes.close()
            run.in_thread = False  # what follows, a middleware or a clean-up, is on the loop again
            if waiting:
                waiting.cancel()

    def _interrupted(self, run: Run, plan: Plan, error: BaseException | None) -> Outcome:
        """What an error means, given what was asked of the run."""
        error = error if error is not None else asyncio.CancelledError()
        cancelled = isinstance(error, asyncio.CancelledError)
        if run.user_code is not None and cancelled and run.interruption is not None and run.task is not None:
            run.task.uncancel()
        match run.interruption:
            case None:
                return Failed(error)
            case Interruption.TIMEOUT:
                return TimedOut(plan.hard_s or 0.0)
            case Interruption.CANCEL:
                return CancelHonoured(run.cancel_reason) if cancelled else Failed(error)
            case Interruption.NO_THREAD:
                return Interrupted("no thread came free for it in time")
            case Interruption.DRAIN | Interruption.LEASE_LOST:
                return Interrupted("the worker stopped") if cancelled else Failed(error)
            case _:
                assert_never(run.interruption)


def _at_once(task: TaskDefinition, limit_s: float | None) -> float | None:
    """The limit, if it counts from the beginning of a run; in a thread it counts once there is one."""
    return limit_s if task.is_async else None


def _give_up_waiting(run: Run) -> None:
    if not run.in_thread:
        run.interrupt(Interruption.NO_THREAD)


class _NotStarted(asyncio.CancelledError):
    """The run was interrupted before a thread came to it."""


def _is_torn_down(run: Run) -> bool:
    """Whether the event loop ends around this run. A task may also cancel itself, which is its own failure."""
    if asyncio._get_running_loop() is None or asyncio.current_task() is not run.task:
        return True  # its coroutine is being closed
    return run.interruption is None and all(task.cancelling() for task in asyncio.all_tasks())


def _overridden(plan: Plan, text: bytes) -> Plan:
    """The plan with what the call said of its run; checked again, because it may come from outside."""
    try:
        options = from_json(text)
    except ValueError as error:
        raise InvalidArguments(f"the stored options are not readable: {error}") from None
    if not isinstance(options, dict):
        raise InvalidArguments(f"the stored options are not an object but {type(options).__name__}")
    if "timeout" in options:
        plan = plan.limited(limit_s("timeout", options["timeout"]))
    if "soft_timeout" in options:
        plan = plan._replace(soft_s=limit_s("soft_timeout", options["soft_timeout"]))
    if "retry" in options:
        plan = plan.under(RetryPolicy.from_data(options["retry"]))
    return plan
