"""`hf.tasks`: the tasks of an app, and what can be done about them while everything runs."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.client.tasks import TaskInfo, Tasks
from holdfast.core.task import Registry


class AppTasks(Registry):
    """The registry of an app; `list`, `pause` and `resume` need it open, as every operation on the store does."""

    def __init__(self, opened: Callable[[], Tasks]) -> None:
        super().__init__()
        self._opened = opened

    async def list(self) -> list[TaskInfo]:
        """Those that this app knows, and those that are paused; by name."""
        return await self._opened().list()

    async def pause(self, task: str, *, by: str = "") -> None:
        """Nothing more of this task is started, in any process; what runs goes on, and jobs may still be enqueued."""
        await self._opened().pause(task, by=by)

    async def resume(self, task: str, *, by: str = "") -> None:
        """Start its jobs again, those that waited first."""
        await self._opened().resume(task, by=by)
