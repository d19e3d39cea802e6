"""What is found in annotations, also postponed ones; what is refused is in `tests/integration/test_injection.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from holdfast.core.errors import InvalidOptions
from holdfast.core.options import TaskOptions
from holdfast.core.provide import PROVIDED, MakerKind, Provide, check_needs, provided_parameters, recipe
from holdfast.core.task import define

if TYPE_CHECKING:
    from elsewhere import Unknown  # type: ignore[import-not-found]


def function() -> int:
    return 1


async def coroutine(one: Annotated[int, Provide(function)], two: int = 2) -> int:
    return one + two


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


Number = Annotated[int, Provide(coroutine, scope="job")]


async def task(a: int, b: Unknown, *, c: Number, d: Number = PROVIDED, e: Annotated[int, "a note"] = 5) -> None: ...


def test_provided_parameters_are_found_in_postponed_annotations_and_behind_names() -> None:
    need = Provide(coroutine, "job")
    assert provided_parameters(task, what="task") == {"c": need, "d": need}
    assert define(task, name="t", options=TaskOptions()).provided == {"c": need, "d": need}


def test_a_task_without_any_has_none() -> None:
    assert define(function, name="t", options=TaskOptions()).provided == {}
    assert provided_parameters(len, what="task") == {}


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (function, MakerKind.FUNCTION),
        (coroutine, MakerKind.COROUTINE),
        (generator, MakerKind.GENERATOR),
        (async_generator, MakerKind.ASYNC_GENERATOR),
        (partial(generator), MakerKind.GENERATOR),
        (partial(coroutine, two=3), MakerKind.COROUTINE),
        (dict, MakerKind.FUNCTION),
    ],
)
def test_a_recipe_says_how_to_call(make: Any, kind: MakerKind) -> None:
    assert recipe(make).kind is kind
    assert recipe(make).needs == ({"one": Provide(function)} if kind is MakerKind.COROUTINE else {})


def test_what_is_given_need_not_be_made() -> None:
    def given(app: object) -> None: ...

    check_needs({"x": Provide(given)}, what="task", given=[given])
    with pytest.raises(InvalidOptions, match="nobody provides its parameter 'app'"):
        check_needs({"x": Provide(given)}, what="task")


def test_the_default_is_recognisable() -> None:
    assert repr(PROVIDED) == "PROVIDED"
