"""A task's signature, compiled once with Pydantic: checks and encodes calls and results, and decodes them again.

Payloads are JSON, never pickle. What is stored is what the caller passed; the worker checks it again, because a
job may come from another version of the code, or from outside.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic_core import ArgsKwargs, PydanticSerializationError, from_json, to_json, to_jsonable_python

from holdfast.core.errors import InvalidArguments, InvalidOptions
from holdfast.core.json_text import check_json, is_ordinary_json
from holdfast.core.task import TaskDefinition

Call = tuple[tuple[Any, ...], dict[str, Any]]

_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, _EITHER)


class Signature:
    """The calls and results of one task."""

    def __init__(self, task: TaskDefinition) -> None:
        self.task = task

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, limit: int) -> bytes:
        """Check a call against the task and encode it; InvalidArguments names the argument."""
        if self.task.provided:
            self._refuse_provided(args, kwargs)
        is_plain = _look_over(self.task.name, args, kwargs)
        self._checked(args, kwargs)
        payload = _written(self.task.name, args, kwargs, limit)
        if not is_plain:
            # What is no plain JSON may be written in a way that cannot be read again: better told here than there.
            try:
                self.decode(payload)
            except InvalidArguments as error:
                raise InvalidArguments(f"{error} (after it was written as JSON and read again)") from None
        return payload

    def canonical(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """A checked call in one spelling: every argument by its name, in the order of the signature."""
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError:  # Pydantic knows a parameter by another name than Python does
            return json.dumps(to_jsonable_python(ordered([args, kwargs])), sort_keys=True).encode()
        return json.dumps(to_jsonable_python(ordered(bound.arguments)), sort_keys=True).encode()

    def by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """A call's arguments by name, in the types that the task declares, with the task's defaults."""
        args, kwargs = self._checked(args, kwargs)
        if (defaults := self._defaults) is not None and kwargs.keys() <= defaults.keys():  # quicker than to bind
            return {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}
        bound = self._parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        named = dict(bound.arguments)
        for each in self._parameters.parameters.values():
            if each.kind is inspect.Parameter.VAR_KEYWORD:
                named |= named.pop(each.name)
        return named

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        try:
            call: Call = self._check(ArgsKwargs(tuple(args), dict(kwargs)))
        except ValidationError as error:
            raise InvalidArguments(self._sentence(error), field=_field(error)) from None
        return call

    def decode(self, payload: bytes) -> Call:
        """The arguments of a stored call, in the types that the task declares."""
        args, kwargs = decode_call(payload)
        if self.task.provided:
            self._refuse_provided(args, kwargs)
        try:
            call: Call = self._check(ArgsKwargs(args, kwargs))
        except ValidationError as error:
            by_name = self._decode_by_name(args, kwargs)
            if by_name is None:
                raise InvalidArguments(self._sentence(error)) from None
            return by_name
        return call

    def _decode_by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
        """As JSON, where a strict type takes a text for a time; Pydantic reads only calls by name like this."""
        parameters = list(self._parameters.parameters.values())[: len(args)]
        named = {each.name: value for each, value in zip(parameters, args, strict=False) if each.kind is _EITHER}
        if len(named) < len(args) or named.keys() & kwargs.keys():
            return None  # cannot be said by name
        try:
            call: Call = self._calls.validate_json(to_json({**named, **kwargs}))
        except ValidationError:
            return None
        return call

    def encode_result(self, value: Any, *, limit: int) -> bytes:
        """A result as JSON."""
        return encode_json(f"the result of {self.task.name}", value, limit=limit)

    def decode_result(self, result: bytes | None) -> Any:
        """A stored result, in the type that the task declares; where it does not fit any more, as plain JSON."""
        result = b"null" if result is None else result
        if self._results is None:
            return plain_result(result)
        try:
            return self._results.validate_json(result)
        except ValidationError:
            return plain_result(result)

    def schema(self) -> dict[str, Any] | None:
        """The arguments as JSON Schema: an object by name or, of those by place only, an array; None: neither fits."""
        try:
            return self._calls.json_schema()
        except (PydanticInvalidForJsonSchema, InvalidOptions):
            return None

    @functools.cached_property
    def _check(self) -> Callable[[ArgsKwargs], Any]:
        # The validator itself: the adapter's own method would ask several questions more, at every call.
        return self._calls.validator.validate_python

    @functools.cached_property
    def _calls(self) -> TypeAdapter[Any]:
        @functools.wraps(self.task.function)
        def collect(*args: Any, **kwargs: Any) -> Call:
            return args, kwargs

        # A function written in C has no annotations to take the place of these.
        collect.__annotations__ = dict(getattr(self.task.function, "__annotations__", {}))
        collect.__annotations__.pop("return", None)  # of no concern to the caller, and it may not be readable here
        if self.task.provided:
            collect.__signature__ = self._parameters  # type: ignore[attr-defined]  # read by `inspect`
            for name in self.task.provided:
                del collect.__annotations__[name]
        return self._compile(collect)

    @functools.cached_property
    def _parameters(self) -> inspect.Signature:
        """What callers pass: all but what is provided."""
        signature = inspect.signature(self.task.function)
        passed = [each for name, each in signature.parameters.items() if name not in self.task.provided]
        return signature.replace(parameters=passed)

    @functools.cached_property
    def _defaults(self) -> dict[str, Any] | None:
        """All parameters by name, in order, also those without one; None: some have no name of their own."""
        parameters = self._parameters.parameters.values()
        if any(each.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for each in parameters):
            return None
        return {each.name: each.default for each in parameters}

    def check_by_hand(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A direct call has no worker to provide anything: all of it has to be passed."""
        passed = inspect.signature(self.task.function).bind_partial(*args, **kwargs).arguments
        if missing := [name for name in self.task.provided if name not in passed]:
            names = " and ".join(map(repr, missing))
            raise InvalidArguments(
                f"{self.task.name}: only a worker provides {names}; a direct call passes it by hand, as in "
                f"{missing[0]}=…"
            )

    def _refuse_provided(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        passed = [name for name in self.task.provided if name in kwargs]
        parameters = inspect.signature(self.task.function).parameters.values()
        by_place = [each.name for each in parameters if each.kind in _BY_PLACE]
        passed += [name for name in by_place[: len(args)] if name in self.task.provided]
        if passed:
            raise InvalidArguments(
                f"{self.task.name}: argument {passed[0]!r} is provided by the worker and is not enqueued; leave it out"
            )

    @functools.cached_property
    def _results(self) -> TypeAdapter[Any] | None:
        """None: a result is given as the plain JSON that it is."""
        hints = self._returns()
        try:
            return None if hints is inspect.Signature.empty else self._compile(hints)
        except InvalidOptions:
            return None

    def _returns(self) -> Any:
        try:
            return inspect.signature(self.task.function, eval_str=True).return_annotation
        except Exception:  # whatever an annotation may do when it is evaluated
            return inspect.Signature.empty

    def _compile(self, target: Any) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(target)
        except (PydanticUserError, NameError, TypeError) as error:
            raise InvalidOptions(
                f"task {self.task.name}: its annotations cannot be checked ({type(error).__name__}: "
                f"{str(error).splitlines()[0]}); arguments need types that can be written as JSON"
            ) from error

    def _sentence(self, error: ValidationError) -> str:
        places = [each.name for each in self._parameters.parameters.values() if each.kind in _BY_PLACE]
        problems = []
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            where, *inner = problem["loc"] or ("?",)
            if isinstance(where, int):
                name = repr(places[where]) if where < len(places) else str(where + 1)  # people count from 1
            else:
                name = repr(where)
            path = "".join(f"[{step!r}]" for step in inner)
            problems.append(f"argument {name}{path}: {problem['msg']}")
        return f"{self.task.name}: {'; '.join(problems)}"


def _field(error: ValidationError) -> str:
    """The first argument at fault, as whoever wrote the call as JSON finds it there."""
    where, *inner = error.errors(include_url=False, include_input=False, include_context=False)[0]["loc"] or ("?",)
    root = f"args[{where}]" if isinstance(where, int) else f"kwargs.{where}"
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in inner)


def encode_call(task: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, limit: int) -> bytes:
    """A call as JSON, unchecked against any signature (enqueue by name)."""
    _look_over(task, args, kwargs)
    return _written(task, args, kwargs, limit)


def _written(task: str, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> bytes:
    try:
        payload = to_json({"args": args, "kwargs": kwargs})
    except (PydanticSerializationError, ValueError, RecursionError):
        _name_the_culprit(task, args, kwargs, limit)
        raise
    if len(payload) > limit or not is_ordinary_json(payload):  # asked here: most calls need no more, and no words
        check_json(payload, limit=limit, what=f"the arguments of {task}")
    return payload


def encode_json(what: str, value: Any, *, limit: int) -> bytes:
    """Any value as JSON, within the rules of what can be stored."""
    try:
        text = to_json(value)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise InvalidArguments(f"{what} cannot be written as JSON: {str(error).splitlines()[0]}") from None
    check_json(text, limit=limit, what=what)
    return text


def plain_result(result: bytes | None) -> Any:
    """A stored result as plain JSON."""
    try:
        return None if result is None else from_json(result)
    except ValueError as error:
        raise InvalidArguments(f"the stored result is not readable: {error}") from None


def decode_call(payload: bytes) -> Call:
    """The raw arguments of a stored call."""
    try:
        call = from_json(payload)
        args, kwargs = call["args"], call["kwargs"]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidArguments(f"the stored call is not readable: {type(error).__name__}: {error}") from None
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise InvalidArguments('the stored call is not of the form {"args": […], "kwargs": {…}}')
    return tuple(args), kwargs


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _look_over(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Refuse what would be stored as something else, without an error; True when all of it is plain."""
    if _SCALARS.issuperset(map(type, args)) and _SCALARS.issuperset(map(type, kwargs.values())):
        return True
    for name, value in (*enumerate(args, 1), *kwargs.items()):
        if trouble := _trouble(value):
            raise InvalidArguments(f"{task}: argument {name!r} {trouble}")
    return False


def _trouble(value: Any) -> str | None:
    """What would become something else on its way, at any depth."""
    if isinstance(value, Iterator):
        return f"holds an iterator ({type(value).__name__}), which can be read only once; pass a list"
    if hasattr(value, "get_secret_value"):
        return (
            "holds a Pydantic secret, which is written as asterisks and would not arrive; pass a reference to where "
            "the secret is kept"
        )
    return next(filter(None, map(_trouble, _parts(value))), None)


def _parts(value: Any) -> Iterable[Any]:
    """What a value holds."""
    match value:
        case BaseModel():
            return [each for _, each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        case Mapping():
            return value.values()
        case list() | tuple() | set() | frozenset():
            return value
        case _:
            return ()


def ordered(value: Any) -> Any:
    """The value with every set written in one order: a set's own order differs from process to process."""
    match value:
        case set() | frozenset():
            return sorted((ordered(each) for each in value), key=to_json)
        case BaseModel():
            return ordered(dict(value))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: ordered(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case dict():
            return {key: ordered(each) for key, each in value.items()}
        case list() | tuple():
            return [ordered(each) for each in value]
        case _:
            return value


def _name_the_culprit(task: str, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> None:
    named: list[tuple[object, Any]] = [*enumerate(args, 1), *kwargs.items()]
    for name, value in named:
        label = f"argument {name!r}" if isinstance(name, str) else f"argument {name}"
        encode_json(f"{task}: {label}", value, limit=limit)
