"""`Unique`, `Debounce` and `Throttle`: what makes no sense is refused in a sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast.core.defaults import TaskDefaults, resolve_options
from holdfast.core.errors import InvalidOptions
from holdfast.core.once_options import Debounce, Throttle, Unique, once_of
from holdfast.core.options import CallOptions, call_options
from holdfast.core.state import State
from holdfast.core.unset import UNSET


async def later(**_: Any) -> str:
    return ""


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Unique(for_=0), "Unique: for_=0: needs to be from 0.001 seconds to ten years"),
        (lambda: Unique(by=()), "Unique: by=() must be names of arguments, as in by=('to',), or a plain function"),
        (lambda: Unique(by=5), "Unique: by=5 must be names of arguments"),
        (lambda: Unique(by=[""]), "Unique: by=[''] must be names of arguments"),
        (lambda: Unique(by=later), "must be names of arguments"),
        (lambda: Unique(states=[]), "Unique: states=[] must be some of the states of a job: ready, scheduled"),
        (lambda: Unique(states=["done"]), "Unique: states=['done'] must be some of the states"),
        (
            lambda: Unique(states=["running"]),
            "Unique: states=['running'] leaves out ready, scheduled, blocked, parked: a job that has not ended",
        ),
        (
            lambda: Unique(states=[State.READY, "scheduled", "blocked", "parked", "dead"]),
            "leaves out running: a job that has not ended goes from one of these states to another",
        ),
        (lambda: Unique(states=["succeeded"]), "name all of them (ready, scheduled, blocked, running, parked), and of"),
        (lambda: Unique(states=5), "Unique: states=5 must be some of the states"),
        (lambda: Unique(when_taken="drop"), "Unique: when_taken='drop' must be one of reject, existing, replace"),
        (lambda: Debounce(0), "Debounce: wait=0: needs to be from 0.001 seconds to ten years"),
        (lambda: Debounce("x"), "Debounce: wait='x': needs seconds or a timedelta, not str"),
        (lambda: Debounce(5, longest=4), "Debounce: longest=4 is below wait=5: no call would ever wait that long"),
        (lambda: Throttle(-1), "Throttle: every=-1: needs to be from 0.001 seconds"),
        (lambda: once_of(unique=5), "unique=5: needs a Unique(…), not int"),
        (
            lambda: once_of(unique=Unique(), debounce=5),
            "unique= and debounce= exclude each other: each says what becomes of a call too many; give one of them",
        ),
        (lambda: TaskDefaults(debounce=1, throttle=2), "debounce= and throttle= exclude each other"),
        (
            lambda: CallOptions(**call_options(debounce=5, delay=3)),
            "debounce= and delay= say two different times; give one of them",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        make()
    assert sentence in str(caught.value)


def test_one_level_says_one_of_them_or_none_or_nothing() -> None:
    assert once_of() is UNSET
    assert once_of(throttle=None) is None
    assert once_of(unique=None, debounce=5) == Debounce(5)
    assert once_of(throttle=timedelta(seconds=2)) == Throttle(timedelta(seconds=2))
    app = TaskDefaults(unique=Unique())
    assert resolve_options(TaskDefaults(throttle=5), app=app).once == Throttle(5)
    assert resolve_options(TaskDefaults(debounce=None), app=app).once is None
    assert resolve_options(TaskDefaults(), app=app).once == Unique()
