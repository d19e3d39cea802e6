"""What is refused when a task is declared: functions that cannot be asked, names that two tasks mean differently."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from holdfast import (
    Breaker,
    Debounce,
    ErrorClass,
    Holdfast,
    InvalidOptions,
    Limit,
    Rate,
    RetryPolicy,
    TaskDefaults,
    Throttle,
    Unique,
)
from holdfast.core.queue import parse_served


def declare(hf: Holdfast, name: str = "t", **options: Any) -> None:
    @hf.task(name=name, **options)
    async def task(account: str, part: int = 0) -> None: ...


@pytest.mark.parametrize("asked", [lambda nope: nope, lambda account: account, lambda: 1, lambda a, /, **_: a])
@pytest.mark.parametrize(
    "given",
    [
        lambda asked: {"concurrency": [Limit(9), Limit(1, key=asked, name="x")]},
        lambda asked: {"rate": Rate("1/s", key=asked)},
        lambda asked: {"unique": Unique(by=asked)},
        lambda asked: {"debounce": Debounce(1, by=asked)},
        lambda asked: {"throttle": Throttle(1, by=asked)},
        lambda asked: {"tenant": asked},
    ],
)
def test_a_function_that_cannot_take_the_arguments_is_refused(asked: Any, given: Any) -> None:
    with pytest.raises(InvalidOptions) as caught:
        declare(Holdfast(":memory:"), **given(asked))
    assert "is asked with the call's arguments by name, (account, part), which it does not take" in str(caught.value)


class _Callable:
    def __call__(self, account: str, part: int) -> str:
        return account


@pytest.mark.parametrize(
    "asked",
    [
        *(lambda account, part: account, lambda account, **_: account, lambda **all: str(all), lambda *_, **__: "x"),
        *(
            lambda account, part, other=1: account,
            _Callable(),
            functools.partial(lambda x, **_: x, 1),
            "{}".format,
            str,
        ),
    ],
)
def test_one_that_can_or_may_is_not(asked: Any) -> None:
    declare(Holdfast(":memory:"), concurrency=Limit(1, key=asked), tenant=asked)


def test_of_a_task_that_takes_anything_only_what_is_certain_is_refused() -> None:
    hf = Holdfast(":memory:")

    @hf.task(concurrency=Limit(1, key=lambda account, word: account))
    async def anything(account: str, **words: str) -> None: ...

    with pytest.raises(InvalidOptions, match="which it does not take"):

        @hf.task(concurrency=Limit(1, key=lambda word: word))
        async def nothing(account: str, **words: str) -> None: ...


def test_a_tenant_of_all_tasks_may_be_named_by_the_calls_of_this_one() -> None:
    declare(Holdfast(":memory:", defaults=TaskDefaults(tenant=lambda user, **_: user)))


@pytest.mark.parametrize(
    ("one", "other", "sentence"),
    [
        (
            {"concurrency": Limit(1, name="same", when_full="skip")},
            {"concurrency": [Limit(9), Limit(5, name="same", when_full="replace")]},
            "limit 'same': task a says 1 at once, when full skip, task b says 5 at once, when full replace; one",
        ),
        (
            {"concurrency": Limit(5, name="same")},
            {"concurrency": Limit(5, name="same", when_full="skip")},
            "limit 'same': task a says 5 at once, when full wait, task b says 5 at once, when full skip; one name is",
        ),
        (
            {"rate": Rate("1/h", name="same")},
            {"rate": Rate("100/s", name="same")},
            "rate 'same': task a says 1/h (burst 1), task b says 100/s (burst 100); one name is",
        ),
        (
            {"breaker": Breaker("same", failures=1)},
            {"breaker": Breaker("same", failures=100)},
            "breaker 'same': task a says 1 failure in 60 s, open for 30 s, task b says 100 failures in",
        ),
        (
            {"concurrency": 3},
            {"concurrency": Limit(2, name="task:a")},
            "limit 'task:a': task a says 3 at once, when full wait, task b says 2 at once, when full wait; one name is",
        ),
    ],
)
def test_one_name_with_two_meanings_is_refused_and_both_tasks_are_named(one: Any, other: Any, sentence: str) -> None:
    hf = Holdfast(":memory:")
    declare(hf, "a", **one)
    with pytest.raises(InvalidOptions) as caught:
        declare(hf, "b", **other)
    assert str(caught.value).startswith(sentence)
    declare(Holdfast(":memory:"), "b", **other)
    assert hf.tasks.get("b") is None


def test_one_name_with_one_meaning_is_shared() -> None:
    hf = Holdfast(":memory:", queue_defaults={"default": TaskDefaults(concurrency=9, rate="5/s")})
    shared = {"concurrency": Limit(5, name="api"), "rate": Rate("60/m", name="api"), "breaker": Breaker("api")}
    declare(hf, "a", **shared)
    declare(hf, "b", **shared | {"concurrency": Limit(5, name="api", key=lambda account, **_: account)})
    declare(hf, "c", breaker=Breaker("api", on=ValueError))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Limit(1, name="queue: bad name"),
            "limit 'queue: bad name': queue name ' bad name' has ' ' at position 1",
        ),
        (lambda: Limit(1, name="queue:"), "limit 'queue:': a queue name must not be empty"),
        (lambda: Rate("1/s", name="task:a b"), "limit 'task:a b': task name 'a b' has ' ' at position 2"),
        (lambda: Limit(1, name=" "), "a limit name must not be blank: ' '"),
        (lambda: Breaker("  "), "a breaker name must not be blank: '  '"),
        (
            lambda: Breaker("b", on=["no such thing!!"]),
            "on='no such thing!!' can be no exception's name; give one as in",
        ),
        (lambda: Breaker("b", on=["a..b"]), "on='a..b' can be no exception's name"),
        (lambda: ErrorClass(name="x", then="dead", exceptions=["not a name!"]), "exceptions='not a name!' can be no"),
        (lambda: ErrorClass(name="x", then="dead", exceptions=["E"], longest=5), "longest=5 is for then='retry_after'"),
        (lambda: ErrorClass(name="x", then="fixed", delay=1, exceptions=["E"], longest=5), "longest=5 is for then="),
        *(
            (lambda word=word: parse_served([word]), "at most 1,000,000")
            for word in ("q=1e308", "q=inf", "q=nan", "q=1e7")
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        make()
    assert sentence in str(caught.value)


def test_what_may_be_meant_is_not() -> None:
    Limit(1, name="queue:mail"), Limit(1, name="task:shop.send")
    Breaker("b", on=["TimeoutError", "my-module.f.<locals>.Überlauf", KeyError])
    ErrorClass(name="x", then="retry_after", exceptions=["a.b.C"], longest=5)
    RetryPolicy(retry_on=[ValueError])
    assert parse_served(["q=1e6", "r=0"]) == {"q": 1e6, "r": 0.0}


def test_a_wait_that_outlasts_the_job_is_refused() -> None:
    hf = Holdfast(":memory:")

    @hf.task(debounce=5)
    async def task() -> None: ...

    with pytest.raises(InvalidOptions, match=r"^expires=0\.5 is not above debounce=1: no such job would ever run$"):
        task.options(debounce=1, expires=0.5)
    with pytest.raises(InvalidOptions, match=r"^expires=5 is not above debounce=5"):
        hf.placement(task.options(expires=5).request())
    hf.placement(task.options(expires=6).request())
    task.options(throttle=60, expires=5)
