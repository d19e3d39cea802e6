"""What a caller passes either arrives as it was, or is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr, computed_field
from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast, InvalidArguments
from holdfast.client.arguments import Signature
from holdfast.client.task import Task
from holdfast.core.options import TaskOptions
from holdfast.core.task import define

ITERATORS: dict[str, Callable[[], Any]] = {
    "generator": lambda: (n for n in (1, 2)),
    "map": lambda: map(int, "12"),
    "iterator": lambda: iter([1, 2]),
}


class Login(BaseModel):
    password: SecretStr


class Sealed(BaseModel):
    inner: list[Login]


SECRETS: dict[str, Any] = {
    "text": SecretStr("hunter2"),
    "bytes": SecretBytes(b"hunter2"),
    "in a model": Login(password=SecretStr("hunter2")),
    "deep in a model": Sealed(inner=[Login(password=SecretStr("hunter2"))]),
    "in a dict": {"password": SecretStr("hunter2")},
}


class Reading(BaseModel):
    value: float


class Hidden(BaseModel):
    token: str = Field(exclude=True)


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.a


class Aliased(BaseModel):
    a: int = Field(validation_alias="A")


UNREADABLE: dict[str, BaseModel] = {
    "NaN in a float": Reading(value=float("nan")),
    "a required field that is not written": Hidden(token="t"),
    "a computed field that is forbidden": Computed(a=1),
    "read under another name": Aliased(A=1),  # type: ignore[call-arg]
}


class Tagged(BaseModel):
    tags: set[int]


@dataclass
class Marked:
    tags: frozenset[int]
    more: list[set[int]]


class Plain:
    """A class that Pydantic cannot read."""


def _ways(hf: Holdfast, kind: Any) -> dict[str, Task[..., Any]]:
    async def take(value: Any) -> None: ...

    take.__annotations__["value"] = kind
    task = hf.task(name="take")(take)
    by_name = hf.named("elsewhere")
    return {"checked": task, "with a key": task.options(key="k"), "by name": by_name, "both": by_name.options(key="j")}


@pytest.mark.parametrize("kind", [list[int], Iterable[int], Any], ids=str)
@pytest.mark.parametrize("what", ITERATORS)
@scene
async def test_what_can_be_read_only_once_is_refused(what: str, kind: Any) -> None:
    """The check used up a generator, and an empty list was stored in its place."""
    hf = Holdfast(":memory:")
    ways = _ways(hf, kind)
    async with hf:
        for task in ways.values():
            with pytest.raises(InvalidArguments, match=r"argument 1 holds an iterator .*; pass a list"):
                await task.enqueue(ITERATORS[what]())
            with pytest.raises(InvalidArguments, match=r"argument 'value' holds an iterator"):
                await hf.enqueue_many([task.request(value=ITERATORS[what]())])
        assert await hf.jobs.list() == []


@pytest.mark.parametrize("what", SECRETS)
@scene
async def test_a_secret_that_would_arrive_as_asterisks_is_refused(what: str) -> None:
    """A SecretStr was written as asterisks, and the task worked with those."""
    hf = Holdfast(":memory:")
    ways = _ways(hf, type(SECRETS[what]))
    async with hf:
        for task in ways.values():
            with pytest.raises(InvalidArguments, match=r"argument 1 holds a Pydantic secret") as refusal:
                await task.enqueue(SECRETS[what])
            assert "hunter2" not in str(refusal.value)
        assert await hf.jobs.list() == []


@pytest.mark.parametrize("what", UNREADABLE)
@scene
async def test_a_model_that_cannot_be_read_again_is_refused(what: str) -> None:
    """It was valid as an object and not as the JSON made of it: stored, and dead at its first run."""
    hf = Holdfast(":memory:")
    ways = _ways(hf, type(UNREADABLE[what]))
    async with hf:
        for way in ("checked", "with a key"):
            with pytest.raises(InvalidArguments, match=r"argument 'value'.*\(after it was written as JSON and read"):
                await ways[way].enqueue(UNREADABLE[what])
        assert await hf.jobs.list() == []


@scene
async def test_a_set_inside_a_model_or_a_dataclass_has_one_fingerprint() -> None:
    """Only bare sets were put in order: a retry with a model from another process was a conflict."""
    hf = Holdfast(":memory:")

    @hf.task(name="mark")
    async def mark(model: Tagged, data: Marked) -> None: ...

    one, other, less = ((Tagged(tags=each), Marked(frozenset(each), [each])) for each in ({0, 8}, {8, 0}, {8}))
    assert list(one[0].tags) != list(other[0].tags), "equal sets that are walked in different orders"
    assert list(one[1].tags) != list(other[1].tags)
    assert mark.signature is not None
    canonical = mark.signature.canonical
    assert canonical(one, {}) == canonical(other, {})
    assert canonical(one, {}) != canonical(less, {})
    async with hf:
        call = mark.options(key="k")
        assert (await call.enqueue(*one)).id == (await call.enqueue(*other)).id


@scene
async def test_a_result_whose_annotation_cannot_be_compiled_is_plain_json() -> None:
    """The job had succeeded, and `result()` raised for a return annotation that Pydantic cannot read."""
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(name="plain")
    async def plain() -> Plain:
        return {"a": 1}  # type: ignore[return-value]

    async with hf, hf.worker():
        result: object = await (await plain.enqueue()).result(timeout=PATIENCE_S)
    assert result == {"a": 1}


@scene
async def test_a_parameter_with_an_alias_can_have_a_key() -> None:
    """Its call was valid for Pydantic and not for Python's own binding: enqueue raised a TypeError."""
    hf = Holdfast(":memory:", poll_s=0.05)

    @hf.task(name="double")
    async def double(n: Annotated[int, Field(alias="N")]) -> int:
        return 2 * n

    async with hf, hf.worker():
        call: Task[..., int] = double.options(key="k")
        job = await call.enqueue(N=4)
        assert (await call.enqueue(N=4)).id == job.id
        assert await job.result(timeout=PATIENCE_S) == 8


@dataclass
class Account:
    name: str
    password: SecretStr


def test_what_changes_on_its_way_is_found_at_any_depth() -> None:
    """Only the arguments themselves were looked at: a generator in a list arrived as an empty list."""

    def work(values: list[list[int]], login: Any = None) -> None: ...

    signature = Signature(define(work, name="work", options=TaskOptions()))
    with pytest.raises(InvalidArguments, match="argument 1 holds an iterator"):
        signature.encode(([(n for n in (1, 2))],), {}, limit=1000)
    with pytest.raises(InvalidArguments, match="argument 'login' holds a Pydantic secret"):
        signature.encode(([],), {"login": {"of": [Account("ann", SecretStr("x"))]}}, limit=1000)


def test_a_return_type_that_cannot_be_resolved_does_not_hinder_a_call() -> None:
    """The whole signature was compiled for a call, with the sentence of an argument that was not at fault."""

    def work(value: int) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821

    signature = Signature(define(work, name="work", options=TaskOptions()))
    assert signature.encode((1,), {}, limit=1000) == b'{"args":[1],"kwargs":{}}'
    assert signature.decode_result(b"7") == 7
