"""Collects every check of the suite by its topic and name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from types import ModuleType

from holdfast.stores.base import Store
from holdfast.testing.contracts import (
    api_keys,
    attempts,
    breakers,
    cancel,
    changes,
    claim,
    dead,
    draining,
    endings,
    expiry,
    fencing,
    figures,
    full_limits,
    gates,
    hints,
    insert,
    inspect,
    joins,
    keys,
    last_lanes,
    leader,
    leases,
    limits,
    lines,
    moving,
    order,
    parking,
    queues,
    races,
    rates,
    reap,
    routes,
    rules,
    settle,
    tenants,
    timers,
    unique,
    unique_replays,
    upkeep,
    wakening,
    watermarks,
)

Check = Callable[[Store], Awaitable[None]]

_PREFIX = "check_"


def _collect(topics: Iterable[ModuleType]) -> dict[str, Check]:
    return {
        f"{topic.__name__.rpartition('.')[2]}.{name.removeprefix(_PREFIX)}": member
        for topic in topics
        for name, member in vars(topic).items()
        if name.startswith(_PREFIX)
    }


#: Every check by its name, `topic.behaviour`.
CHECKS: dict[str, Check] = _collect(
    [
        insert,
        keys,
        last_lanes,
        lines,
        unique,
        unique_replays,
        watermarks,
        draining,
        claim,
        order,
        tenants,
        settle,
        fencing,
        attempts,
        leases,
        reap,
        cancel,
        races,
        timers,
        expiry,
        joins,
        limits,
        gates,
        full_limits,
        rates,
        breakers,
        figures,
        rules,
        routes,
        wakening,
        parking,
        dead,
        queues,
        moving,
        changes,
        api_keys,
        endings,
        inspect,
        upkeep,
        leader,
        hints,
    ]
)

__all__ = ["CHECKS", "Check"]
