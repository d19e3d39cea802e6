"""What there is: tasks with the schemas of their arguments, where a call would go, workers, settings, the record."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import Field

from holdfast.client.placing import Said
from holdfast.client.tasks import TaskInfo
from holdfast.core.api_key import Scope
from holdfast.http.bodies import Submission, TaskPath
from holdfast.http.call import Call, Called
from holdfast.http.caller import Reach
from holdfast.http.problem import Problem
from holdfast.http.problems import INVALID_ARGUMENTS, NOT_ROUTED, TASK_NOT_FOUND, UNKNOWN_TASK
from holdfast.http.route_table import Routes, Takes
from holdfast.http.routes.submitting import options_of, task_of
from holdfast.http.views import View

routes = Routes("insight")


class TaskView(View):
    """A task, as this app and the store know it."""

    name: str
    queue: str | None = Field(description="Where its jobs wait; null of one that this app does not know.")
    paused: bool
    doc: str | None
    arguments: dict[str, Any] | None = Field(
        description="JSON Schema of its arguments: an object by name, or an array by place; null: nobody can say."
    )


class TasksView(View):
    """All tasks, by name."""

    tasks: list[TaskView]


class SaidView(View):
    """A value, and who said it."""

    value: Any
    by: str


class PlacementView(View):
    """Where a job would go, and why."""

    queue: SaidView
    priority: SaidView
    tenant: SaidView


class WorkerView(View):
    """A registered worker."""

    id: UUID
    host: str
    pid: int
    concurrency: int
    running: int
    queues: list[str] = Field(description="Empty: every queue.")
    started_at: datetime
    lease_until: datetime
    lag_s: float


class WorkersView(View):
    """All workers. One that died stays until its lease has ended."""

    workers: list[WorkerView]


class SettingView(View):
    """One setting of this server."""

    name: str
    value: Any
    origin: str


class SettingsView(View):
    """All settings, without passwords."""

    settings: list[SettingView]


class ChangeView(View):
    """Who changed or did what."""

    number: int
    at: datetime
    by: str
    what: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ChangesView(View):
    """Changes, newest first."""

    changes: list[ChangeView]
    next: int | None = Field(description="The `before` of the next page; null: there are no more.")


@routes.get("/tasks", reach=Reach.NOTHING)
async def list_tasks(call: Called) -> TasksView:
    """Those that this app knows, and those that are paused."""
    return TasksView(tasks=[_task(call, each) for each in await call.hf.tasks.list()])


@routes.get("/tasks/{task}", reach=Reach.NOTHING, problems=(TASK_NOT_FOUND,))
async def get_task(call: Called, task: TaskPath) -> TaskView:
    """One task, with the schema of its arguments."""
    found = next((each for each in await call.hf.tasks.list() if each.name == task), None)
    if found is None:
        raise Problem(TASK_NOT_FOUND, f"no task is called {task!r} here")
    return _task(call, found)


@routes.post(
    "/routing/explain",
    scope=Scope.SUBMIT,
    reach=Reach.JOBS,
    takes=Takes.ONE,
    problems=(UNKNOWN_TASK, INVALID_ARGUMENTS, NOT_ROUTED),
)
async def explain_routing(call: Called, body: Submission) -> PlacementView:
    """Where the job of a submission would go, and who says so. Stores nothing."""
    task = task_of(call, body).options(**options_of(call, body, None, None))
    await call.hf.routes.look()
    place = call.hf.placement(task.request(*body.args, **body.kwargs))
    call.caller.check_queue(place.queue.value)
    return PlacementView(queue=_said(place.queue), priority=_said(place.priority), tenant=_said(place.tenant))


@routes.get("/workers", reach=Reach.CLUSTER)
async def list_workers(call: Called) -> WorkersView:
    """The workers that are registered now, with how many jobs each runs."""
    found = await call.hf.workers.list()
    return WorkersView(workers=[WorkerView.model_validate(each, from_attributes=True) for each in found])


@routes.get("/settings", scope=Scope.ADMIN, reach=Reach.CLUSTER)
async def list_settings(call: Called) -> SettingsView:
    """Every setting of this server, and where its value came from."""
    config = call.hf.config
    shown = config.masked()
    return SettingsView(
        settings=[SettingView(name=name, value=value, origin=config.origin(name)) for name, value in shown.items()]
    )


@routes.get("/audit", scope=Scope.ADMIN, reach=Reach.CLUSTER)
async def list_changes(
    call: Called,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at most.")] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="`next` of the page before.")] = None,
) -> ChangesView:
    """Who changed what of queues, routes, tenants, limits, breakers, keys, and who did what to jobs; newest first."""
    found = await call.hf.audit.list(limit=limit, before=before)
    changes = [ChangeView(**each._asdict()) for each in found]
    return ChangesView(changes=changes, next=found[-1].number if len(found) == limit else None)


def _task(call: Call, task: TaskInfo) -> TaskView:
    signature = call.hf.named(task.name).signature
    doc = None if signature is None else signature.task.function.__doc__
    arguments = None if signature is None else signature.schema()
    return TaskView(name=task.name, queue=task.queue, paused=task.paused, doc=doc, arguments=arguments)


def _said(said: Said) -> SaidView:
    return SaidView(value=said.value, by=said.by)
