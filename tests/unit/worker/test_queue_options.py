"""What operators say goes before what a worker is configured with, field by field, and is taken up when it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from holdfast.core.queue import QueueSettings
from holdfast.core.queue_options import QueueOptions
from holdfast.worker.queue_options import OptionsInForce
from holdfast.worker.retry_budgets import RetryBudgets
from holdfast.worker.slots import Slots


class Shares:
    """Keeps what budgets are told."""

    def __init__(self) -> None:
        self.told: list[Mapping[str, float]] = []

    def set_shares(self, shares: Mapping[str, float]) -> None:
        self.told.append(shares)


class Running:
    """Counts how often it is asked what runs."""

    def __init__(self, *queues: str) -> None:
        self.queues = queues
        self.asked = 0

    def __call__(self) -> Iterable[str]:
        self.asked += 1
        return self.queues


def options(configured: Mapping[str, QueueOptions], running: Running) -> tuple[OptionsInForce, Slots, Shares]:
    slots, shares = Slots(10), Shares()
    in_force = OptionsInForce(configured, slots=slots, budgets=cast("RetryBudgets", shares), running=running)
    return in_force, slots, shares


def said(**queues: dict[str, Any]) -> dict[str, QueueSettings]:
    return {name: QueueSettings(options=QueueOptions(**each)) for name, each in queues.items()}


def test_each_option_that_operators_name_goes_before_the_configured_one() -> None:
    configured = {"mail": QueueOptions(concurrency=2, retry_budget=0.5), "bank": QueueOptions(retry_budget=0.1)}
    in_force, slots, shares = options(configured, Running())
    in_force.follow({})
    assert (slots.caps, shares.told[-1]) == ({"mail": 2}, {"mail": 0.5, "bank": 0.1})
    in_force.follow(said(mail={"concurrency": 7}, bank={"concurrency": 1}, other={"retry_budget": 0.3}))
    assert (slots.caps, shares.told[-1]) == ({"mail": 7, "bank": 1}, {"mail": 0.5, "bank": 0.1, "other": 0.3})
    in_force.follow(said(mail={}))
    assert (slots.caps, shares.told[-1]) == ({"mail": 2}, {"mail": 0.5, "bank": 0.1}), "as configured again"


def test_what_runs_is_counted_for_a_bound_where_none_was() -> None:
    in_force, slots, _ = options({}, Running("mail", "mail", "bank"))
    in_force.follow(said(mail={"concurrency": 3}))
    assert slots.rooms == {"mail": 1}


def test_where_nothing_has_changed_nothing_is_done() -> None:
    running = Running()
    in_force, _, shares = options({"mail": QueueOptions(concurrency=2)}, running)
    for _ in range(3):
        in_force.follow({"mail": QueueSettings(paused=True), "bank": QueueSettings()})
    assert (running.asked, len(shares.told)) == (1, 1)


def test_none_is_no_bound_and_no_budget_and_nothing_is_counted() -> None:
    running = Running("mail")
    in_force, slots, shares = options({"mail": QueueOptions(concurrency=2, retry_budget=0.5)}, running)
    in_force.follow(said(mail={"concurrency": 10_000, "retry_budget": 1.0}))
    assert (slots.caps, shares.told[-1], running.asked) == ({}, {}, 0)
