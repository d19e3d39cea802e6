"""Tasks as definitions: their names, what can be one, and the registry of an app."""

from __future__ import annotations

import functools
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from holdfast.core.errors import InvalidOptions, UnknownTask
from holdfast.core.options import TaskOptions
from holdfast.core.task import Registry, TaskDefinition, default_name, define


async def on_the_loop() -> None: ...


def in_a_thread() -> None: ...


def defined(function: Any, name: str | None = None) -> TaskDefinition:
    return define(function, name=name, options=TaskOptions())


def test_a_task_is_called_by_its_module_and_qualified_name() -> None:
    def inner() -> None: ...

    assert defined(on_the_loop).name == f"{__name__}.on_the_loop"
    assert defined(inner).name == (f"{__name__}.test_a_task_is_called_by_its_module_and_qualified_name.<locals>.inner")
    assert defined(on_the_loop, "mail").name == "mail"


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        ({"__spec__": SimpleNamespace(name="shop.worker")}, "shop.worker"),
        ({"__spec__": SimpleNamespace(name="shop.__main__")}, "shop"),
        ({"__spec__": None, "__file__": "/srv/app/tasks.py"}, "tasks"),
        ({"__spec__": None, "__file__": "C:\\app\\tasks.py"}, "tasks"),
        ({"__spec__": None}, "__main__"),
    ],
)
def test_a_script_has_the_name_under_which_others_import_it(
    main: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("__main__")
    for name, value in main.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "__main__", module)

    def work() -> None: ...

    work.__module__, work.__qualname__ = "__main__", "work"
    assert default_name(work) == f"{expected}.work"


def test_the_kind_of_function_decides_where_it_runs() -> None:
    @functools.wraps(on_the_loop)
    async def wrapped() -> None: ...

    assert defined(on_the_loop).is_async
    assert defined(wrapped).is_async
    assert not defined(in_a_thread).is_async


@pytest.mark.parametrize("thing", [int, object(), "text", None, functools.partial(in_a_thread), SimpleNamespace])
def test_only_a_function_can_be_a_task(thing: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"^@task needs a function \(def or async def\), not "):
        defined(thing)


def test_a_registry_knows_its_tasks_by_name() -> None:
    registry = Registry()
    tasks = [defined(on_the_loop, "one"), defined(in_a_thread, "two")]
    for task in tasks:
        registry.add(task)
    assert list(registry) == tasks
    assert registry.names() == ("one", "two")
    assert registry.get("two") is registry.require("two") is tasks[1]
    assert registry.get("three") is None


def test_an_unknown_task_is_told_with_what_may_have_been_meant() -> None:
    registry = Registry()
    registry.add(defined(on_the_loop, "shop.send_mail"))
    with pytest.raises(UnknownTask) as caught:
        registry.require("shop.sendmail")
    assert str(caught.value) == ("no task 'shop.sendmail' is registered in this app; did you mean 'shop.send_mail'?")
    with pytest.raises(UnknownTask, match=r"^no task 'x' is registered in this app$"):
        registry.require("x")


def test_a_name_stands_for_one_function() -> None:
    registry = Registry()
    registry.add(defined(on_the_loop, "work"))
    registry.add(defined(on_the_loop, "work"))  # the same one again
    with pytest.raises(InvalidOptions, match=r"^two tasks are called 'work': .*test_task\.py:\d+ and .*:\d+; give one"):
        registry.add(defined(in_a_thread, "work"))


def test_a_module_that_is_loaded_again_replaces_its_tasks() -> None:
    source = "def work():\n    return {}\n"
    registry = Registry()
    for version in (1, 2):
        namespace: dict[str, Any] = {"__name__": "shop"}
        exec(compile(source.format(version), "shop.py", "exec"), namespace)
        registry.add(defined(namespace["work"]))
    assert registry.require("shop.work").function() == 2
