"""What can be done about tasks while everything runs, on an open store: list, pause, resume."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.client.operator import Operator
from holdfast.core.names import check_name
from holdfast.core.task import Registry


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task, as this app and the store know it."""

    name: str
    """Its name."""
    queue: str | None
    """Where its jobs wait, unless a call says otherwise; None of one that this app does not know."""
    paused: bool
    """Whether nothing of it is started, in any process."""


class Tasks:
    """Pausing a task concerns its jobs in all queues, and all processes."""

    def __init__(self, operator: Operator, registry: Registry) -> None:
        self._operator = operator
        self._store = operator.store
        self._registry = registry

    async def list(self) -> list[TaskInfo]:
        """Those that this app knows, and those that are paused; by name."""
        paused = (await self._store.rules()).paused_tasks
        known = {task.name: task.options.queue for task in self._registry}
        return [TaskInfo(name, known.get(name), name in paused) for name in sorted({*known, *paused})]

    async def pause(self, task: str, *, by: str = "") -> None:
        """Nothing more of this task is started; what runs goes on, and jobs may still be enqueued.

        Any name is accepted: a pause may come before a deploy, and other programs have tasks of their own.
        """
        await self._set(task, paused=True, by=by)

    async def resume(self, task: str, *, by: str = "") -> None:
        """Start its jobs again, those that waited first."""
        await self._set(task, paused=False, by=by)

    async def _set(self, task: str, *, paused: bool, by: str) -> None:
        check_name("task", task)
        who = self._operator.named(by)
        await self._store.set_paused(task=task, paused=paused, by=who)
        self._operator.tell("task", task, "paused" if paused else "resumed", who)
