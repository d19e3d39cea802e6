"""Where jobs go: by the call, routers, patterns, the task; and on whose behalf they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.integration.scene import PATIENCE_S, scene

from holdfast import (
    Holdfast,
    InvalidArguments,
    InvalidOptions,
    Placement,
    Route,
    RoutedCall,
    RoutingFailed,
    TaskDefaults,
)


def placed(placement: Placement) -> list[tuple[Any, str]]:
    return [tuple(said) for said in placement]


def router_named(call: RoutedCall) -> Route | None:
    return Route(queue="routed", priority=9) if call.metadata.get("routed") else None


HERE = __name__


@pytest.mark.parametrize(
    ("level", "queue", "priority"),
    [
        ("call", ("called", "the call"), (1, "the call")),
        ("router", ("routed", f"router {HERE}.router_named"), (9, f"router {HERE}.router_named")),
        ("pattern", ("matched", "pattern 'shop.*' (argument routes)"), (8, "pattern 'shop.*' (argument routes)")),
        ("task", ("own", "the task"), (6, "the task")),
        ("base", ("based", "the task's base"), (4, "the task's base")),
        ("queue", ("based", "the task's base"), (3, "the defaults of queue 'based'")),
        ("app", ("all", "the app's defaults"), (2, "the app's defaults")),
        ("built in", ("default", "built in"), (5, "built in")),
    ],
)
def test_each_level_goes_before_those_below_it(level: str, queue: tuple[str, str], priority: tuple[int, str]) -> None:
    levels = ["call", "router", "pattern", "task", "base", "queue", "app", "built in"]
    lower = levels[levels.index(level) :]

    def at(name: str, **options: Any) -> TaskDefaults | None:
        return TaskDefaults(**options) if name in lower else None

    base = at("base", queue="based", priority=4) or at("queue", queue="based")
    hf = Holdfast(
        ":memory:",
        routes={"shop.*": {"queue": "matched", "priority": 8}} if "pattern" in lower else None,
        defaults=at("app", queue="all", priority=2),
        queue_defaults={"based": TaskDefaults(priority=3)} if "queue" in lower else None,
    )
    hf.router(router_named)

    async def pay() -> None: ...

    own: dict[str, Any] = {"queue": "own", "priority": 6} if "task" in lower else {}
    task: Any = hf.task(name="shop.pay", base=base, **own)(pay)
    call: dict[str, Any] = {"queue": "called", "priority": 1} if "call" in lower else {}
    metadata = {"routed": True} if "router" in lower else {}
    placement = hf.placement(task.options(metadata=metadata, **call).request())
    assert placed(placement) == [queue, priority, ("", "built in")]


def test_each_option_comes_from_the_first_level_that_says_it() -> None:
    hf = Holdfast(":memory:", routes={"shop.*": "shop", "shop.pay": {"priority": "high"}})

    @hf.task(name="shop.pay", priority=1)
    async def pay() -> None: ...

    assert placed(hf.placement(pay.request()))[:2] == [
        ("shop", "pattern 'shop.*' (argument routes)"),
        (7, "pattern 'shop.pay' (argument routes)"),
    ]
    assert placed(hf.placement(pay.options(queue="x").request()))[0] == ("x", "the call")


def test_settings_go_before_the_same_pattern_in_code() -> None:
    hf = Holdfast(":memory:", routes={"a.*": "theirs"})
    hf.route("a.*", queue="ours", priority=7)
    assert placed(hf.placement(hf.named("a.b").request()))[:2] == [
        ("theirs", "pattern 'a.*' (argument routes)"),
        (7, "pattern 'a.*' (code)"),
    ]
    with pytest.raises(InvalidOptions, match=r"^route 'a\.\*': was given before; one pattern has one route$"):
        hf.route("a.*", queue="again")


@dataclass
class Order:
    cents: int


@scene
async def test_a_router_sees_task_arguments_tenant_and_metadata_and_its_jobs_run() -> None:
    hf = Holdfast(":memory:")
    seen: list[RoutedCall] = []

    @hf.router
    def by_size(call: RoutedCall) -> Route | None:
        seen.append(call)
        return Route(queue="large") if call.arguments["order"].cents > 1000 else None

    @hf.task(name="pay", tenant=lambda account, **_: f"account {account}")
    async def pay(order: Order, account: int = 3) -> int:
        return order.cents

    async with hf, hf.worker():
        large = await pay.options(metadata={"tier": "gold"}, tags=["t"]).enqueue(Order(2000), 5)
        small, named = await hf.enqueue_many([pay.request(Order(1)), pay.options(tenant="me").request(Order(2))])
        assert await large.result(timeout=PATIENCE_S) == 2000
        assert [((await job.info()).queue, (await job.info()).tenant) for job in (large, small, named)] == [
            ("large", "account 5"),
            ("default", "account 3"),
            ("default", "me"),
        ]
    assert seen[0] == RoutedCall(
        "pay", {"order": Order(2000), "account": 5}, (Order(2000), 5), "account 5", {"tier": "gold"}, ("t",)
    )
    assert seen[1].arguments == {"order": Order(1), "account": 3}


def raises(call: RoutedCall) -> Route | None:
    raise KeyError(call.metadata["tier"])


def answers_a_text(call: RoutedCall) -> Any:
    return "mail"


def answers_nonsense(call: RoutedCall) -> Route:
    return Route(queue="no such name")


@pytest.mark.parametrize(
    ("router", "sentence"),
    [
        (raises, f"router {HERE}.raises failed for task pay: KeyError: 'tier'; nothing was enqueued"),
        (
            answers_a_text,
            (
                f"router {HERE}.answers_a_text answered for task pay with 'mail': it has to be a Route(…), or None to "
                "leave it to others; nothing was enqueued"
            ),
        ),
        (
            answers_nonsense,
            (
                f"router {HERE}.answers_nonsense failed for task pay: queue name 'no such name' has ' ' at position 3; "
                "allowed are letters A-Z, digits, '_', '.' and '-'; nothing was enqueued"
            ),
        ),
    ],
)
@scene
async def test_a_router_that_fails_is_named_and_nothing_is_stored(
    router: Callable[[RoutedCall], Route | None], sentence: str
) -> None:
    hf = Holdfast(":memory:")
    hf.router(router)

    @hf.task(name="pay")
    async def pay() -> None: ...

    async with hf:
        with pytest.raises(RoutingFailed) as caught:
            await pay.enqueue()
        assert str(caught.value) == sentence
        with pytest.raises(RoutingFailed, match=r"^item 1: router "):
            await hf.enqueue_many([pay.options(queue="a", priority=1).request(), pay.request()])
        assert not await hf.jobs.list()


@pytest.mark.parametrize(
    ("tenant", "sentence"),
    [
        (lambda to, **_: to / 2, "unsupported operand type(s) for /: 'str' and 'int'"),
        (lambda **_: 5, "a tenant must be text, not int: 5"),
        (lambda **_: "a\nb", "has '\\n' at position 2"),
    ],
)
@scene
async def test_a_tenant_that_cannot_be_told_is_an_error_and_nothing_is_stored(tenant: Any, sentence: str) -> None:
    hf = Holdfast(":memory:")

    @hf.task(name="send", tenant=tenant)
    async def send(to: str, subject: str = "hi") -> None: ...

    async with hf:
        with pytest.raises(RoutingFailed, match=r"^tenant= failed for task send: .*; nothing was enqueued$") as caught:
            await send.enqueue("ada")
        assert sentence in str(caught.value)
        assert not await hf.jobs.list()
        job = await send.options(tenant="").enqueue("ada")  # the call goes before it
        assert (await job.info()).tenant == ""


@pytest.mark.parametrize("value", [5, None, b"x"])
def test_a_tenant_is_a_text_or_a_function(value: Any) -> None:
    with pytest.raises(InvalidOptions, match=r"^tenant=.*: needs a text, or a plain function of the call's arguments"):
        Holdfast(":memory:").task(tenant=value)


def test_a_router_does_not_wait() -> None:
    async def slow(call: RoutedCall) -> Route | None: ...

    router: Any = slow
    with pytest.raises(InvalidOptions, match=r"^@router needs a plain function of the call"):
        Holdfast(":memory:").router(router)


@scene
async def test_a_call_that_does_not_fit_is_told_before_any_router_is_asked() -> None:
    hf = Holdfast(":memory:")
    hf.router(raises)

    @hf.task
    async def pay(cents: int) -> None: ...

    wrong: Any = "many"
    async with hf:
        with pytest.raises(InvalidArguments):
            await pay.enqueue(wrong)


def test_routes_hold_for_code_without_an_event_loop(tmp_path: Path) -> None:
    hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}", routes={"pay": "money"})

    @hf.task(name="pay", tenant="acme")
    def pay() -> None: ...

    job = pay.sync.enqueue()
    assert (job.info().queue, job.info().tenant) == ("money", "acme")
    hf.sync.close()


@scene
async def test_a_worker_finds_queues_that_only_a_route_names() -> None:
    hf = Holdfast(":memory:", routes={"*": "elsewhere"})

    @hf.task
    async def work() -> int:
        return 1

    async with hf, hf.worker(), asyncio.timeout(PATIENCE_S):
        assert await (await work.enqueue()).result() == 1
