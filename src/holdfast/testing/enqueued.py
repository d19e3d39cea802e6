"""What a test has seen enqueued, and assertions on it that say what there was instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_jsonable_python

from holdfast.client.arguments import Signature, decode_call
from holdfast.client.task import Task
from holdfast.core.durations import Seconds, seconds
from holdfast.core.job import JobId, NewJob
from holdfast.core.task import Registry

_ANY_SIZE = 2**31


@dataclass(frozen=True, slots=True)
class Enqueued:
    """One job as it was enqueued; its arguments are those that the task will get."""

    id: JobId
    task: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    queue: str
    priority: int
    delay_s: float | None
    tenant: str
    key: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, Any] | None

    def __str__(self) -> str:
        call = ", ".join([*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())])
        delay = "" if self.delay_s is None else f" delay={self.delay_s:g}"
        return f"{self.task}({call}) queue={self.queue!r}{delay}"


class EnqueuedJobs:
    """`t.enqueued` and the assertions on it. Without arguments, a task's any call counts; with some, the whole call."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.enqueued: list[Enqueued] = []
        """Every job that was enqueued, in order; a repeated idempotency key enqueues nothing."""

    def assert_enqueued(
        self,
        task: Task[..., Any] | str,
        /,
        *args: Any,
        queue: str | None = None,
        delay: Seconds | None = None,
        **kwargs: Any,
    ) -> Enqueued:
        """At least one such job was enqueued; returns the last of them."""
        delay_s = None if delay is None else seconds("delay", delay)
        found = [
            each
            for each in self._of(task)
            if (not (args or kwargs) or self._same_call(each, args, kwargs))
            and queue in (None, each.queue)
            and delay_s in (None, each.delay_s)
        ]
        if not found:
            call = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]) or "…"
            more = "".join(f" {k}={v!r}" for k, v in (("queue", queue), ("delay", delay_s)) if v is not None)
            raise AssertionError(f"{_name(task)}({call}){more} was not enqueued. {self._story()}")
        return found[-1]

    def assert_not_enqueued(self, task: Task[..., Any] | str, /) -> None:
        """No job of this task was enqueued."""
        if self._of(task):
            raise AssertionError(f"{_name(task)} was enqueued. {self._story()}")

    def assert_enqueued_count(self, task: Task[..., Any] | str, count: int, /) -> None:
        """So many jobs of this task were enqueued."""
        found = len(self._of(task))
        if found != count:
            raise AssertionError(f"{_name(task)} was enqueued {found} times, not {count}. {self._story()}")

    def _record(self, job: NewJob, now: float) -> None:
        args, kwargs = decode_call(job.payload)
        known = self._registry.get(job.task)
        if known is not None:
            args, kwargs = Signature(known).decode(job.payload)
        self.enqueued.append(
            Enqueued(
                job.id,
                job.task,
                args,
                kwargs,
                job.queue,
                job.priority,
                job.run_at - now if job.run_at is not None else job.delay_s,
                job.tenant,
                None if job.key is None else job.key.key,
                job.tags,
                None if job.metadata is None else from_json(job.metadata),
            )
        )

    def _of(self, task: Task[..., Any] | str) -> list[Enqueued]:
        return [each for each in self.enqueued if each.task == _name(task)]

    def _same_call(self, each: Enqueued, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        known = self._registry.get(each.task)
        if known is None:
            return bool((list(each.args), each.kwargs) == to_jsonable_python((list(args), kwargs)))
        signature = Signature(known)
        wanted = signature.decode(
            signature.encode(args, kwargs, limit=_ANY_SIZE)
        )  # with its defaults, as it would arrive
        return signature.canonical(each.args, each.kwargs) == signature.canonical(*wanted)

    def _story(self) -> str:
        if not self.enqueued:
            return "Nothing was enqueued."
        lines = "".join(f"\n  {number}. {each}" for number, each in enumerate(self.enqueued, 1))
        return f"What was enqueued ({len(self.enqueued)}):{lines}"


def _name(task: Task[..., Any] | str) -> str:
    return task if isinstance(task, str) else task.name
