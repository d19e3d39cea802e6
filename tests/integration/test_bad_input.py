"""Bad input at every door: what the user reads says what was wrong, where, and what to do. Settings: `test_config`."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.integration.refusals import CALLS, NAIVE, NAMES, OPERATING
from tests.integration.scene import scene

from holdfast import (
    Holdfast,
    HoldfastError,
    InvalidOptions,
    RetryLater,
    RetryPolicy,
    current_job,
)


def _a_generator() -> Iterator[int]:
    yield 1


async def _an_async_generator() -> Any:
    yield 1


# ---------------------------------------------------------------- options of a call

OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "delay as text": ({"delay": "5"}, "delay='5': needs seconds or a timedelta, not str"),
    "delay as a bool": ({"delay": True}, "delay=True: needs seconds or a timedelta, not bool"),
    "delay in the past": ({"delay": -1}, "delay=-1: needs to be from 0 seconds to ten years"),
    "delay NaN": ({"delay": math.nan}, "delay=nan: needs to be from 0 seconds to ten years"),
    "delay for ever": (
        {"delay": timedelta(days=4000)},
        "delay=345600000.0: needs to be from 0 seconds to ten years",
    ),
    "run_at as a number": ({"run_at": 5}, "run_at=5: needs a datetime with a time zone, not int"),
    "run_at without a zone": (
        {"run_at": NAIVE},
        "run_at=2024-02-29T00:00:00: has no time zone; use datetime.now(UTC), or give it one with .replace(tzinfo=…)",
    ),
    "delay and run_at": (
        {"delay": 1, "run_at": datetime(2024, 2, 29, tzinfo=UTC)},
        "delay= and run_at= say two different times; give one of them",
    ),
    "expires as text": ({"expires": "noon"}, "expires='noon': needs seconds or a timedelta, not str"),
    "expires without a zone": (
        {"expires": NAIVE},
        "expires=2024-02-29T00:00:00: has no time zone; use datetime.now(UTC), or give it one with .replace(tzinfo=…)",
    ),
    "priority too high": (
        {"priority": 10},
        f"priority=10: needs a whole number from 0 to 9 (most urgent) or one of {NAMES}",
    ),
    "priority misspelt": (
        {"priority": "hihg"},
        f"there is no priority 'hihg' (did you mean 'high'?); give one of {NAMES} or a number 0 to 9",
    ),
    "priority None": (
        {"priority": None},
        f"priority=None: needs a whole number from 0 to 9 (most urgent) or one of {NAMES}",
    ),
    "queue with a space": (
        {"queue": "my queue"},
        "queue name 'my queue' has ' ' at position 3; allowed are letters A-Z, digits, '_', '.' and '-'",
    ),
    "queue empty": ({"queue": ""}, "a queue name must not be empty; give 1 to 64 characters"),
    "queue too long": (
        {"queue": "q" * 65},
        f"queue name '{'q' * 40}'… has 65 characters; at most 64 are allowed",
    ),
    "tenant as a number": ({"tenant": 5}, "a tenant must be text, not int: 5"),
    "key empty": ({"key": ""}, "an idempotency key must not be empty; give 1 to 255 characters"),
    "key as a number": ({"key": 17}, "an idempotency key must be text, not int: 17"),
    "key_window too short": ({"key_window": 0}, "key_window=0: needs to be from 1 seconds to ten years"),
    "tags as text": ({"tags": "abc"}, "tags='abc': needs a list of texts"),
    "tags with a number": ({"tags": ["a", 5]}, "a tag must be text, not int: 5"),
    "too many tags": ({"tags": ["a"] * 21}, "tags: 21 were given, at most 20 are kept per job"),
    "metadata as a list": ({"metadata": [1]}, "metadata=[1]: needs a mapping from texts to JSON values"),
    "metadata with numbers for names": (
        {"metadata": {1: 2}},
        "metadata={1: 2}: needs a mapping from texts to JSON values",
    ),
    "timeout nought": ({"timeout": 0}, "timeout=0: needs to be from 0.001 seconds to ten years"),
    "soft_timeout as text": ({"soft_timeout": "1"}, "soft_timeout='1': needs seconds or a timedelta, not str"),
    "retry as a number": ({"retry": 3}, "retry=3: needs a RetryPolicy(…), not int"),
    "wait for ever": ({"wait": math.inf}, "wait=inf: needs to be from 0 seconds to ten years"),
}

# ---------------------------------------------------------------- decorators

DECORATORS: dict[str, tuple[Callable[[Holdfast], Any], str]] = {
    "a class": (
        lambda hf: hf.task(datetime),
        "@task needs a function (def or async def), not type <class 'datetime.datetime'>",
    ),
    "a partial": (
        lambda hf: hf.task(functools.partial(print, 1)),
        "@task needs a function (def or async def), not partial functools.partial(<built-in function print>, 1)",
    ),
    "a text": (
        lambda hf: hf.task("name"),
        "@task needs a function (def or async def), not str 'name'",
    ),
    "a task": (
        lambda hf: hf.task(hf.task(inspect.cleandoc)),
        "@task needs a function (def or async def), not SyncTask <Task inspect.cleandoc>",
    ),
    "a generator": (
        lambda hf: hf.task(_a_generator),
        "@task: _a_generator is a generator; a task returns one result",
    ),
    "an async generator": (
        lambda hf: hf.task(_an_async_generator),
        "@task: _an_async_generator is a generator; a task returns one result",
    ),
    "a bad name": (
        lambda hf: hf.task(name="a b")(_work),
        (
            "task name 'a b' has ' ' at position 2; allowed are letters A-Z, digits and any of _ . < > : - "
            "(give the task another one with name=)"
        ),
    ),
    "a bad queue": (
        lambda hf: hf.task(queue="a/b"),
        "queue name 'a/b' has '/' at position 2; allowed are letters A-Z, digits, '_', '.' and '-'",
    ),
    "a bad priority": (
        lambda hf: hf.task(priority=1.5),
        f"priority=1.5: needs a whole number from 0 to 9 (most urgent) or one of {NAMES}",
    ),
    "retries as a number": (lambda hf: hf.task(retry=3), "retry=3: needs a RetryPolicy(…), not int"),
    "a soft limit behind the hard one": (
        lambda hf: hf.task(timeout=30, soft_timeout=30),
        "soft_timeout=30 is not below timeout=30: the soft limit must come first, to leave the task time to tidy up",
    ),
    "a limit as text": (lambda hf: hf.task(timeout="30"), "timeout='30': needs seconds or a timedelta, not str"),
}


async def _work() -> None: ...


# ---------------------------------------------------------------- retry policies

POLICIES: dict[str, tuple[dict[str, Any], str]] = {
    "no attempt": ({"max_attempts": 0}, "max_attempts=0 must be 1 (no retry) to 1,000,000"),
    "half an attempt": ({"max_attempts": 1.5}, "max_attempts=1.5 must be a whole number"),
    "base as text": ({"base": "1"}, "base='1' must be a number of seconds"),
    "base below nought": ({"base": -1}, "base=-1 must be from 0 seconds to ten years"),
    "base above cap": ({"base": 90}, "base=90.0 is above cap=60; raise cap, or use backoff='fixed'"),
    "backoff misspelt": (
        {"backoff": "exponentail"},
        (
            "backoff='exponentail' must be one of exponential, linear, fixed or a list of seconds "
            "(did you mean 'exponential'?)"
        ),
    ),
    "backoff empty": ({"backoff": []}, "backoff=[] is an empty list; give at least one delay in seconds"),
    "backoff with text": ({"backoff": [1, "2"]}, "backoff[1]='2' must be a number of seconds"),
    "jitter": ({"jitter": "some"}, "jitter='some' must be 'full' or 'none'"),
    "retry_on": ({"retry_on": [5]}, "retry_on=5 must be an exception type or the name of one"),
    "give_up_on": ({"give_up_on": 5}, "give_up_on=5 must be a list of exception types or names"),
    "delays": ({"delays": [5]}, "delays=[5] must map exception types to seconds"),
    "delays in words": ({"delays": {OSError: "soon"}}, "delays[builtins.OSError]='soon' must be a number of seconds"),
}

# ---------------------------------------------------------------- inside a task

PROGRESS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "done below nought": (lambda job: job.progress(-1), "progress(done=-1): needs a number from 0"),
    "done as text": (lambda job: job.progress("1"), "progress(done='1'): needs a number from 0"),
    "done unknown": (lambda job: job.progress(None), "progress(done=None): needs a number from 0"),
    "total NaN": (lambda job: job.progress(1, math.nan), "progress(total=nan): needs a number from 0"),
    "stage as a number": (lambda job: job.progress(1, stage=5), "progress(stage=5): needs a text"),
    "a transaction on SQLite": (
        lambda job: job.transaction(),
        (
            "current_job().transaction() needs the PostgreSQL store: on SQLite your data lives elsewhere, so effect "
            "and completion cannot commit together; make the effect idempotent instead"
        ),
    ),
}


async def _refused(act: Callable[[], Any], kind: type[HoldfastError], sentence: str) -> None:
    async def do() -> None:
        answer = act()
        if inspect.isawaitable(answer):
            await answer

    with pytest.raises(HoldfastError) as caught:
        await do()
    assert type(caught.value) is kind
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", [*CALLS, *OPERATING])
@scene
async def test_a_bad_call_is_refused_in_a_sentence_and_stores_nothing(name: str) -> None:
    hf = Holdfast(":memory:", payload_limit=1024)

    @hf.task(name="work")
    async def work(n: int, sizes: dict[str, int] | None = None, thing: Any = None) -> None: ...

    door, kind, sentence = (CALLS | OPERATING)[name]
    async with hf:
        await _refused(lambda: door(hf, work), kind, sentence)
        assert await hf.jobs.list() == [] or "awaited" in name
        assert await hf.queues.list() == [] or "awaited" in name


@pytest.mark.parametrize("name", OPTIONS)
def test_a_bad_option_is_refused_before_anything_is_asked(name: str) -> None:
    hf = Holdfast(":memory:")
    options, sentence = OPTIONS[name]
    with pytest.raises(InvalidOptions) as caught:
        hf.task(_work).options(**options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", DECORATORS)
def test_a_bad_decorator_is_refused_where_it_stands(name: str) -> None:
    decorate, sentence = DECORATORS[name]
    with pytest.raises(InvalidOptions) as caught:
        decorate(Holdfast(":memory:"))
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", POLICIES)
def test_a_bad_policy_is_refused_where_it_is_made(name: str) -> None:
    fields, sentence = POLICIES[name]
    with pytest.raises(InvalidOptions) as caught:
        RetryPolicy(**fields)
    assert str(caught.value) == f"RetryPolicy: {sentence}"


@pytest.mark.parametrize("after", [-1, math.nan, "5", None, timedelta(seconds=5)])
def test_retry_later_needs_a_time(after: Any) -> None:
    with pytest.raises(InvalidOptions) as caught:
        RetryLater(after=after)
    assert str(caught.value) == f"RetryLater(after={after!r}): needs seconds from 0 to ten years"


@pytest.mark.parametrize("name", PROGRESS)
@scene
async def test_a_bad_report_of_progress_is_refused_and_the_run_goes_on(name: str) -> None:
    hf = Holdfast(":memory:")
    report, sentence = PROGRESS[name]
    kind = HoldfastError if "transaction" in sentence else InvalidOptions

    @hf.task
    async def work() -> str:
        job = current_job()
        await _refused(lambda: report(job), kind, sentence)
        return "went on"

    async with hf, hf.worker():
        job = await work.enqueue()
        assert await job.result(timeout=30) == "went on"
        assert (await job.info()).progress is None


def test_two_tasks_of_one_name_are_refused() -> None:
    hf = Holdfast(":memory:")
    hf.task(name="work")(_work)

    async def other() -> None: ...

    with pytest.raises(InvalidOptions) as caught:
        hf.task(name="work")(other)
    one, two = (f"{__file__}:{each.__code__.co_firstlineno}" for each in (_work, other))
    assert str(caught.value) == (
        f"two tasks are called 'work': {one} and {two}; give one of them a name of its own with @task(name=…)"
    )


@scene
async def test_annotations_that_cannot_be_checked_are_told_at_the_first_call() -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="work")
    async def work(lock: inspect.Signature) -> None: ...

    async with hf:
        with pytest.raises(InvalidOptions) as caught:
            await work.enqueue(None)
    assert str(caught.value) == (
        "task work: its annotations cannot be checked (PydanticSchemaGenerationError: Unable to generate "
        "pydantic-core schema for <class 'inspect.Signature'>. Set `arbitrary_types_allowed=True` in the model_config "
        "to ignore this error or implement `__get_pydantic_core_schema__` on your type to fully support it.); "
        "arguments need types that can be written as JSON"
    )
