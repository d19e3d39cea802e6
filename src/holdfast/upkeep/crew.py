"""All upkeep of one worker: what each of them does, and what only the leader among them does."""

from __future__ import annotations

from typing import Any

from holdfast.client.dispatch import STORE_ALONE, Dispatch
from holdfast.config import Config
from holdfast.core.task import Registry
from holdfast.runtime.clock import Clock
from holdfast.runtime.service import Service
from holdfast.stores.base import Store
from holdfast.stores.health import StoreHealth
from holdfast.telemetry.hub import Telemetry
from holdfast.upkeep.courier import Courier
from holdfast.upkeep.folder import Folder
from holdfast.upkeep.leader import Leader
from holdfast.upkeep.promoter import Promoter
from holdfast.upkeep.pruner import Pruner, Sweeper
from holdfast.upkeep.reaper import Reaper
from holdfast.upkeep.unparker import Unparker


def make_crew(
    store: Store,
    registry: Registry,
    config: Config,
    *,
    clock: Clock,
    telemetry: Telemetry,
    health: StoreHealth,
    dispatch: Dispatch = STORE_ALONE,
) -> tuple[Service, ...]:
    """Not yet started. Jobs become ready and come back from the dead without a leader; those after it need one."""
    shared: dict[str, Any] = {"telemetry": telemetry, "health": health}
    keep: dict[str, float] = {"keep_succeeded_s": config.keep_succeeded_s, "keep_cancelled_s": config.keep_cancelled_s}
    leader = Leader(store, lease_s=config.lease_s, clock=clock, **shared)
    return (
        Promoter(store, **shared),
        Reaper(store, lease_s=config.lease_s, clock=clock, **shared),
        Unparker(store, registry, **shared),
        leader,
        Pruner(store, leader=leader, **shared | keep),
        Sweeper(store, leader=leader, **shared),
        Folder(store, leader=leader, **shared),
        *([] if dispatch.store is None else [Courier(store, dispatch, leader=leader, **shared)]),
    )
