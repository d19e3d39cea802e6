"""One call becomes one `NewJob`: the task's defaults, changed by what the call says; nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.client.arguments import Signature
from holdfast.client.request import Request, build_job
from holdfast.config import Config
from holdfast.core.errors import InvalidOptions
from holdfast.core.job import NewJob
from holdfast.core.options import NO_OPTIONS, CallOptions, TaskOptions, call_options
from holdfast.core.retry import RetryPolicy
from holdfast.core.task import define

CONFIG = Config(key_window_s=100.0)


async def work(a: int, b: int = 2) -> None: ...


def build(*args: Any, task: TaskOptions | None = None, known: bool = True, **options: Any) -> NewJob:
    definition = define(work, name="work", options=task or TaskOptions(queue="mail", priority=7))
    given = CallOptions(**call_options(**options)) if options else NO_OPTIONS
    return build_job(Request("work", args or (1,), {}, given, Signature(definition) if known else None), CONFIG)


def test_a_plain_call_has_the_tasks_defaults_and_nothing_else() -> None:
    job = build(1)
    assert job == NewJob(job.id, "work", "mail", 7, b'{"args":[1],"kwargs":{}}', max_attempts=5)


def test_a_call_by_name_leaves_attempts_to_the_worker() -> None:
    job = build(1, known=False)
    assert job == NewJob(job.id, "work", "default", 5, b'{"args":[1],"kwargs":{}}', max_attempts=None)


def test_every_call_is_a_job_of_its_own() -> None:
    assert build().id != build().id


def test_options_of_the_call_go_before_the_tasks() -> None:
    job = build(queue="other", priority="low", tenant="acme", tags=["a"], metadata={"x": 1}, delay=5, expires=9)
    assert (job.queue, job.priority, job.tenant, job.tags) == ("other", 2, "acme", ("a",))
    assert (job.metadata, job.delay_s, job.expires_in_s) == (b'{"x":1}', 5.0, 9.0)


def test_only_what_the_call_changes_of_its_run_is_stored() -> None:
    assert build(queue="other").options is None
    policy = RetryPolicy(max_attempts=2, give_up_on=[OSError])
    job = build(timeout=None, soft_timeout=3, retry=policy)
    assert json.loads(job.options or b"") == {"timeout": None, "soft_timeout": 3.0, "retry": policy.to_data()}
    assert job.max_attempts == 2


def test_limits_are_checked_against_those_of_the_task() -> None:
    with pytest.raises(InvalidOptions, match=r"^soft_timeout=20 is not below timeout=10"):
        build(task=TaskOptions(timeout_s=10.0), soft_timeout=20)
    with pytest.raises(InvalidOptions, match=r"^soft_timeout=5 is not below timeout=2"):
        build(task=TaskOptions(soft_timeout_s=5.0), timeout=2)


def test_a_key_is_kept_with_its_window_and_what_was_asked() -> None:
    key = build(1, key="k").key
    assert key is not None
    assert (key.key, key.window_s) == ("k", 100.0)
    other = build(1, key="k", key_window=5).key
    assert other is not None
    assert (other.window_s, other.fingerprint) == (5.0, key.fingerprint)
    changed = build(3, key="k").key
    assert changed is not None
    assert changed.fingerprint != key.fingerprint
