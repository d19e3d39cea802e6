"""`Limit`, `Rate` and `Breaker`: what makes no sense is refused in a sentence, and which level's holds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.core.breaker import BreakerGate
from holdfast.core.defaults import TaskDefaults, resolve_options
from holdfast.core.errors import InvalidOptions
from holdfast.core.limit_options import Breaker, Limit, Rate, breaker_of, limits_of, rates_of
from holdfast.core.rate import Pace


async def later(**_: Any) -> str:
    return ""


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Limit(0),
            "Limit: size=0 must be a whole number from 1 to 1,000,000; to start none of a task, pause it",
        ),
        (lambda: Limit(True), "Limit: size=True must be a whole number"),
        (lambda: Limit(1.5), "Limit: size=1.5 must be a whole number"),
        (lambda: Limit(1, key="account"), "Limit: key='account' must be a plain function of the call's arguments"),
        (lambda: Limit(1, key=later), "must be a plain function of the call's arguments"),
        (lambda: Limit(1, name=""), "a limit name must not be empty"),
        (lambda: Limit(1, when_full="drop"), "Limit: when_full='drop' must be one of wait, skip, replace"),
        (lambda: Rate("often"), "rate='often': needs a text as '100/m'"),
        (lambda: Rate("0/s"), "rate='0/s': needs more than 0"),
        (lambda: Rate("5/s", burst=0), "burst=0: needs a whole number of runs from 1"),
        (lambda: Rate("5/s", key=5), "Rate: key=5 must be a plain function"),
        (lambda: Breaker(""), "a breaker name must not be empty"),
        (lambda: Breaker("b", failures=0), "Breaker 'b': failures=0 must be a whole number from 1 to 1,000"),
        (lambda: Breaker("b", window=0), "Breaker 'b': window=0: needs to be from 0.001 seconds to ten years"),
        (lambda: Breaker("b", open_for=-1), "Breaker 'b': open_for=-1: needs to be from 0.001 seconds"),
        (lambda: Breaker("b", open_for="x"), "Breaker 'b': open_for='x': needs seconds or a timedelta, not str"),
        (lambda: Breaker("b", on=[]), "Breaker 'b': on=[] must be a list of exception types or names, one at least"),
        (lambda: Breaker("b", on=[5]), "Breaker 'b': on=[5] must be a list of exception types or names"),
        (lambda: limits_of("5"), "concurrency='5': needs a Limit(…), a whole number, or a list of them"),
        (lambda: limits_of([1, 2]), "concurrency: two of them have no name; give each a name= of its own"),
        (lambda: limits_of([Limit(1, name="a"), Limit(2, name="a")]), "concurrency: two of them are called 'a'"),
        (lambda: limits_of([Limit(1, name=str(n)) for n in range(11)]), "concurrency: 11 were given, at most 10"),
        (lambda: limits_of([]), "concurrency=[]: holds none; for no limit give None"),
        (lambda: TaskDefaults(rate=()), "rate=(): holds none; for no limit give None"),
        (lambda: rates_of(5), "rate=5: needs a Rate(…), a text as '100/m', or a list of them"),
        (lambda: breaker_of(5), "breaker=5: needs a Breaker(…), or its name, not int"),
        (lambda: TaskDefaults(concurrency=0), "Limit: size=0 must be"),
        (lambda: TaskDefaults(rate="x"), "rate='x': needs"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        make()
    assert sentence in str(caught.value)


def test_the_ordinary_ways_to_say_it() -> None:
    assert limits_of(5) == (Limit(5),)
    assert limits_of(None) == rates_of(None) == ()
    assert rates_of("5/s") == (Rate("5/s"),)
    assert Rate("10/30s", burst=2).parsed == Pace(10, 30.0, 2)
    assert breaker_of("stripe") == Breaker("stripe")
    assert Breaker("b", 3, timedelta(minutes=1), 5).gate == BreakerGate("b", 3, 60.0, 5.0)
    assert Breaker("b", on=ValueError).names == ("builtins.ValueError",)
    assert Breaker("b").names is None


def test_a_queues_limits_hold_beside_its_tasks_and_are_the_queues() -> None:
    queues = {"mail": TaskDefaults(concurrency=[Limit(9), Limit(2, name="named")], rate="5/s")}
    options = resolve_options(
        TaskDefaults(queue="mail", concurrency=3), queues=queues, app=TaskDefaults(concurrency=7, breaker="all")
    )
    assert [(each.name, each.size) for each in options.limits] == [(None, 3), ("queue:mail", 9), ("named", 2)]
    assert [(each.name, each.pace) for each in options.rates] == [("queue:mail", "5/s")]
    assert options.breaker == Breaker("all")
    assert options.flows
    elsewhere = resolve_options(TaskDefaults(), queues=queues)
    assert elsewhere.limits == elsewhere.rates == ()
    assert not elsewhere.flows


def test_the_first_level_that_says_it_decides_and_none_is_a_word_too() -> None:
    app = TaskDefaults(concurrency=7, rate="1/s", breaker="all", throttle=5)
    own = TaskDefaults(concurrency=None, rate=None, breaker=None, unique=None)
    assert not resolve_options(own, app=app).flows
    based = resolve_options(TaskDefaults(), base=TaskDefaults(concurrency=2), app=app)
    assert [each.size for each in based.limits] == [2]
