"""What a task is provided with: `Provide(…)` in an annotation, found and checked; making it is the worker's part."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

Maker: TypeAlias = Callable[..., Any]
ScopeName: TypeAlias = Literal["worker", "job"]

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Provide:
    """Says in an annotation who makes a parameter: `db: Annotated[Pool, Provide(make_pool)] = PROVIDED`.

    - `make`: a function (`def`, which runs in a thread, or `async def`) or a generator (of either kind), whose code
      after its `yield` cleans up.
    - `scope`: `"worker"` makes it once per worker, `"job"` anew for every run.
    """

    make: Maker
    scope: ScopeName = "worker"

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InvalidOptions(f"Provide({shown(self.make)}): needs a function that makes the object")
        if self.scope not in get_args(ScopeName):
            raise InvalidOptions(f'Provide(scope={shown(self.scope)}): needs to be "worker" or "job"')


class _Provided:
    def __repr__(self) -> str:
        return "PROVIDED"


PROVIDED: Final[Any] = _Provided()
"""The default of a provided parameter: type checkers then know that a call need not pass it."""


class MakerKind(Enum):
    """How a maker is called."""

    FUNCTION = auto()
    COROUTINE = auto()
    GENERATOR = auto()
    ASYNC_GENERATOR = auto()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one object: what to call, and with what."""

    make: Maker
    kind: MakerKind
    needs: Mapping[str, Provide]


def name_of(function: Maker) -> str:
    """A function as sentences call it."""
    return str(getattr(function, "__qualname__", None) or repr(function))


@functools.cache
def recipe(make: Maker) -> Recipe:
    """Look at a maker once; InvalidOptions says why it cannot be used."""
    if inspect.isgeneratorfunction(inspect.unwrap(make)) != inspect.isgeneratorfunction(make) or (
        inspect.isasyncgenfunction(inspect.unwrap(make)) != inspect.isasyncgenfunction(make)
    ):
        raise InvalidOptions(
            f"Provide({name_of(make)}): is wrapped, as by @asynccontextmanager; give the plain generator"
        )
    needs = provided_parameters(make, what=f"Provide({name_of(make)})")
    for parameter in _signature(make).parameters.values():
        if (
            parameter.default is parameter.empty
            and parameter.name not in needs
            and parameter.kind
            in (
                *_BY_PLACE,
                *_BY_NAME,
            )
        ):
            raise InvalidOptions(
                f"Provide({name_of(make)}): nobody provides its parameter {parameter.name!r}; annotate it with "
                "Annotated[…, Provide(…)], or give it a default"
            )
    return Recipe(make, _kind(make), needs)


def provided_parameters(function: Maker, *, what: str) -> dict[str, Provide]:
    """The parameters of a function that are provided, by name."""
    found: dict[str, Provide] = {}
    for parameter in _signature(function).parameters.values():
        need = _need(function, parameter, what)
        if need is not None:
            if parameter.kind not in _BY_NAME:
                raise InvalidOptions(f"{what}: {parameter} is provided, so it must be possible to pass it by name")
            found[parameter.name] = need
    return found


def check_places(function: Maker, provided: Collection[str], *, what: str) -> None:
    """What callers pass by place must not shift because they leave out what is provided."""
    before: str | None = None
    for name, parameter in _signature(function).parameters.items():
        if parameter.kind not in (*_BY_PLACE, inspect.Parameter.VAR_POSITIONAL):
            continue
        if name in provided:
            before = name
        elif before is not None:
            raise InvalidOptions(
                f"{what}: {before!r} is provided and stands before {name!r}, which callers pass by place; "
                f"move {before!r} to the end, or behind a `*`"
            )


def check_needs(needs: Mapping[str, Provide], *, what: str, given: Collection[Maker] = ()) -> None:
    """Refuse circles, and objects of a worker that would need one of a single job; `given` need not be made."""
    for need in needs.values():
        _check_tree(need, what, (), given)


def check_override(make: Maker, replacement: Maker) -> None:
    """Whether one maker can stand for another."""
    for each in (make, replacement):
        if not callable(each):
            raise InvalidOptions(f"override({shown(each)}): needs the function that Provide(…) names, and another")
    needs = {"": Provide(replacement, scope="job")}
    check_needs(needs, what=f"override by {name_of(replacement)}")
    if make in _makers(replacement):
        raise InvalidOptions(
            f"override({name_of(make)}): {name_of(replacement)} needs the very one that it replaces; call it instead"
        )


@contextlib.contextmanager
def overridden(overrides: MutableMapping[Maker, Maker], make: Maker, replacement: Maker) -> Iterator[None]:
    """Have one maker stand for another, until the end of the block."""
    check_override(make, replacement)
    before = overrides.get(make)
    overrides[make] = replacement
    try:
        yield
    finally:
        if before is None:
            del overrides[make]
        else:
            overrides[make] = before


def _makers(make: Maker) -> set[Maker]:
    return {each.make for each in recipe(make).needs.values()}.union(
        *(_makers(each.make) for each in recipe(make).needs.values())
    )


def _check_tree(need: Provide, what: str, path: tuple[Provide, ...], given: Collection[Maker]) -> None:
    if need.make in given:
        return
    if any(need.make is each.make for each in path):
        circle = " needs ".join(name_of(each.make) for each in (*path, need))
        raise InvalidOptions(f"{what}: its providers go round in a circle: {circle}")
    if path and path[-1].scope == "worker" and need.scope == "job":
        raise InvalidOptions(
            f"{what}: {name_of(path[-1].make)} is made once per worker and cannot need {name_of(need.make)}, which is "
            'made for every job; give both scope="job", or both scope="worker"'
        )
    for each in recipe(need.make).needs.values():
        _check_tree(each, what, (*path, need), given)


def _need(function: Maker, parameter: inspect.Parameter, what: str) -> Provide | None:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        try:
            annotation = _read(annotation, function)
        except Exception as error:
            if parameter.default is not PROVIDED and "Provide" not in annotation:
                return None  # nothing of ours; whether it can be used at all is found when it is compiled
            raise InvalidOptions(
                f"{what}: the annotation of {parameter.name!r} cannot be read ({type(error).__name__}: {error}); what "
                "it names has to stand at the top of its module, and not only for type checkers"
            ) from None
    needs = []
    if get_origin(annotation) is Annotated:
        needs = [each for each in annotation.__metadata__ if isinstance(each, Provide)]
    if len(needs) > 1:
        raise InvalidOptions(f"{what}: {parameter.name!r} has {len(needs)} Provide(…); give it one")
    if not needs and parameter.default is PROVIDED:
        raise InvalidOptions(
            f"{what}: {parameter.name!r} has the default PROVIDED, but its annotation does not say by whom; write "
            f"{parameter.name}: Annotated[…, Provide(…)] = PROVIDED"
        )
    return needs[0] if needs else None


def _read(text: str, function: Maker) -> Any:
    def bearer() -> None: ...

    bearer.__annotations__ = {"it": text}
    return inspect.get_annotations(bearer, globals=_names(function), eval_str=True)["it"]


def _signature(function: Maker) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some of those written in C do not tell
        return inspect.Signature()


def _names(function: Maker) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    names: Mapping[str, Any] = getattr(function, "__globals__", {} if module is None else vars(module))
    return dict(names)


def _kind(make: Maker) -> MakerKind:
    if inspect.isasyncgenfunction(make):
        return MakerKind.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(make):
        return MakerKind.GENERATOR
    return MakerKind.COROUTINE if inspect.iscoroutinefunction(make) else MakerKind.FUNCTION
