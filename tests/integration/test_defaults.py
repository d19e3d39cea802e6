"""Where a task's options come from: the call, the task, its base, its queue, the app, or what is built in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import UNSET, Holdfast, InvalidOptions, RetryPolicy, TaskDefaults
from holdfast.client.request import build_job
from holdfast.core.options import TaskOptions


def tries(most: int) -> RetryPolicy:
    return RetryPolicy(max_attempts=most)


async def work() -> None: ...


def options_of(function: Any = work, *, app: Any = None, queues: Any = None, **decorator: Any) -> TaskOptions:
    hf = Holdfast(":memory:", defaults=app, queue_defaults=queues)
    return hf.tasks.require(hf.task(**decorator)(function).name).options


# What each level says, from the one that counts most to the one that counts least.
LEVELS: dict[str, dict[str, Any]] = {
    "call": {"priority": 1, "retry": tries(11), "timeout": 101, "soft_timeout": 1},
    "task": {"priority": 2, "retry": tries(12), "timeout": 102, "soft_timeout": 2},
    "base": {"priority": 3, "retry": tries(13), "timeout": 103, "soft_timeout": 3},
    "queue": {"priority": 4, "retry": tries(14), "timeout": 104, "soft_timeout": 4},
    "app": {"priority": 6, "retry": tries(16), "timeout": 106, "soft_timeout": 6},
    "built in": {"priority": 5, "retry": tries(5), "timeout": 300, "soft_timeout": None},
}


@pytest.mark.parametrize("option", ["priority", "retry", "timeout", "soft_timeout"])
@pytest.mark.parametrize("highest", range(len(LEVELS)))
def test_the_first_level_that_gives_an_option_decides(option: str, highest: int) -> None:
    names = list(LEVELS)
    said = {name: {option: LEVELS[name][option]} if n >= highest else {} for n, name in enumerate(names)}
    hf = Holdfast(
        ":memory:", defaults=TaskDefaults(**said["app"]), queue_defaults={"mail": TaskDefaults(**said["queue"])}
    )
    task = hf.task(queue="mail", base=TaskDefaults(**said["base"]), **said["task"])(work)
    request = task.options(**said["call"]).request()
    wanted = LEVELS[names[highest]][option]
    resolved = hf.tasks.require(task.name).options
    if highest == 0:
        stored = build_job(request, hf.config)
        if option == "priority":
            assert stored.priority == wanted
        else:
            assert stored.options is not None
            assert f'"{option}":'.encode() in stored.options
    elif option == "retry":
        assert resolved.retry == wanted
        assert build_job(request, hf.config).max_attempts == wanted.max_attempts
    else:
        assert getattr(resolved, {"timeout": "timeout_s", "soft_timeout": "soft_timeout_s"}.get(option, option)) == (
            wanted
        )


@pytest.mark.parametrize(
    ("own", "base", "app", "queue"),
    [("a", "b", "c", "a"), (UNSET, "b", "c", "b"), (UNSET, UNSET, "c", "c"), (UNSET, UNSET, UNSET, "default")],
)
def test_the_queue_itself_comes_from_the_task_its_base_or_the_app(own: Any, base: Any, app: Any, queue: str) -> None:
    options = options_of(
        queue=own,
        base=TaskDefaults(queue=base),
        app=TaskDefaults(queue=app),
        queues={name: TaskDefaults(timeout=place) for place, name in enumerate(("a", "b", "c", "default"), 10)},
    )
    assert options.queue == queue
    assert options.timeout_s == {"a": 10, "b": 11, "c": 12, "default": 13}[queue]


def test_none_is_a_value_and_unset_is_not() -> None:
    app = TaskDefaults(timeout=60, soft_timeout=30)
    assert options_of(app=app, timeout=None, soft_timeout=None).timeout_s is None
    assert options_of(app=app, timeout=None).soft_timeout_s == 30
    assert options_of(app=app, timeout=UNSET).timeout_s == 60


def test_a_def_task_has_soft_limits_like_any_other() -> None:
    def blocking() -> None: ...

    assert options_of(blocking, app=TaskDefaults(soft_timeout=30)).soft_timeout_s == 30
    assert options_of(blocking, app=TaskDefaults(soft_timeout=30), soft_timeout=20).soft_timeout_s == 20


def test_option_sets_are_values_to_derive_others_from() -> None:
    mail = TaskDefaults(queue="mail", retry=tries(9))
    urgent = replace(mail, priority="critical")
    options = options_of(base=urgent)
    assert (options.queue, options.retry, options.priority) == ("mail", tries(9), 9)


@scene
async def test_a_call_that_moves_one_job_keeps_the_options_of_its_task() -> None:
    hf = Holdfast(":memory:", queue_defaults={"mail": TaskDefaults(priority=9), "slow": TaskDefaults(priority=1)})

    @hf.task(queue="mail")
    async def send() -> None: ...

    async with hf:
        info = await (await send.options(queue="slow").enqueue()).info()
        assert (info.queue, info.priority) == ("slow", 9)


@scene
async def test_a_worker_runs_by_the_inherited_options() -> None:
    hf = Holdfast(":memory:", defaults=TaskDefaults(retry=RetryPolicy(max_attempts=2, base=0)))
    runs = []

    @hf.task
    async def flaky() -> str:
        runs.append(1)
        if len(runs) < 2:
            raise ConnectionError("not yet")
        return "done"

    async with hf, hf.worker():
        job = await flaky.enqueue()
        assert await job.result(timeout=PATIENCE_S) == "done"
        assert (await job.info()).max_attempts == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TaskDefaults(retry=3), "retry=3: needs a RetryPolicy(…), not int"),  # type: ignore[arg-type]
        (lambda: TaskDefaults(timeout=-1), "timeout=-1: needs to be from 0.001 seconds to ten years"),
        (lambda: TaskDefaults(timeout=5, soft_timeout=9), "soft_timeout=9 is not below timeout=5: the soft limit"),
        (lambda: options_of(app={"timeout": 3}), "defaults={'timeout': 3}: needs a TaskDefaults(…), not dict"),
        (lambda: options_of(base="mail"), "base='mail': needs a TaskDefaults(…), not str"),
        (lambda: options_of(queues=["mail"]), "queue_defaults=['mail']: needs a mapping from queue names to"),
        (lambda: options_of(queues={"mail": 5}), "queue_defaults['mail']=5: needs a TaskDefaults(…), not int"),
        (
            lambda: options_of(queues={"mail": TaskDefaults(queue="post")}),
            "queue_defaults['mail']: names a queue itself; leave out queue='post'",
        ),
        (lambda: options_of(queues={"a b": TaskDefaults()}), "queue name 'a b' has ' ' at position 2"),
        (
            lambda: options_of(app=TaskDefaults(soft_timeout=60), timeout=30),
            "soft_timeout=60 is not below timeout=30: the soft limit must come first",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        make()
    assert str(refused.value).startswith(sentence)
