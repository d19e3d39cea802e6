"""Which store a URL names, and what can be done with it before it is open."""

from __future__ import annotations

import asyncio
import functools
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from holdfast.client.dispatch import STORE_ALONE, Dispatch
from holdfast.config import Config
from holdfast.core.backpressure import Watermarks
from holdfast.core.errors import ConfigError
from holdfast.core.urls import is_postgres, mask, sqlite_path
from holdfast.runtime.clock import Clock, SystemClock
from holdfast.runtime.threads import in_new_thread
from holdfast.stores.base import Store
from holdfast.stores.dispatch import DispatchStore
from holdfast.stores.sqlite import SqliteStore, store_status
from holdfast.stores.sqlite.statements import migrations as sqlite_migrations
from holdfast.stores.status import StoreStatus
from holdfast.telemetry.hub import Telemetry
from holdfast.transports.base import Transport
from holdfast.transports.status import TransportStatus

if TYPE_CHECKING:
    from holdfast.stores.postgres import PostgresStore


def make_store(config: Config, *, clock: Clock | None = None) -> Store:
    """The store of these settings, not yet open."""
    if is_postgres(config.url):
        return _postgres(config, clock=clock)
    return SqliteStore(sqlite_path(config.url), watermarks=_watermarks(config), clock=clock)


async def open_store(config: Config, *, clock: Clock) -> Store:
    """The same, open."""
    store = make_store(config, clock=clock)
    opening = asyncio.ensure_future(store.open())
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:  # a thread is at it and cannot be stopped half-way
        await asyncio.wait({opening})
        await store.close()
        raise
    return store


async def open_dispatch(config: Config, store: Store, *, clock: Clock, telemetry: Telemetry) -> Dispatch:
    """The transport that the settings name, for an open store; ConfigError where it cannot be used."""
    if not config.redis or config.url == ":memory:":  # a test's store, which no other process has
        return STORE_ALONE
    if not is_postgres(config.url):
        raise ConfigError(
            f"setting redis ({config.origin('redis')}): Redis goes with a PostgreSQL store, and this one is "
            f"{mask(config.url)} ({config.origin('url')}): leave out redis, or store the jobs in PostgreSQL"
        )
    serving: DispatchStore = cast("PostgresStore", store).dispatch
    transport: Transport = await _redis(config, serving, clock=clock, telemetry=telemetry)
    try:
        await transport.open()
    except BaseException:
        await transport.close()
        raise
    serving.announce_to(transport.publish)
    serving.news_to(transport.tell_news)
    return Dispatch(transport, serving)


async def open_transport(config: Config, store: Store) -> Transport:
    """The same for a process without workers, which only announces. It tells of no outage: its workers do."""
    return (await open_dispatch(config, store, clock=SystemClock(), telemetry=Telemetry())).transport


async def transport_status_of(config: Config) -> TransportStatus | None:
    """What is there of a transport beside the store, told without changing it; None where the settings name none."""
    if not config.redis or not is_postgres(config.url):
        return None
    clock = SystemClock()
    store = await open_store(config, clock=clock)
    try:
        serving: DispatchStore = cast("PostgresStore", store).dispatch
        transport = await _redis(config, serving, clock=clock, telemetry=Telemetry())
        try:
            status: TransportStatus = await transport.status((await store.queue_settings()).keys())
        finally:
            await transport.close()
    finally:
        await store.close()
    return status


async def _redis(config: Config, serving: DispatchStore, *, clock: Clock, telemetry: Telemetry) -> Any:
    redis_streams = _optional("holdfast.transports.redis_streams", "Redis", extra="redis")
    return redis_streams.RedisStreams(
        redis_streams.parse_address(config.redis),
        prefix=f"holdfast:{config.schema}:{await serving.installation()}",
        clock=clock,
        telemetry=telemetry,
        on_undelivered=serving.hint_ready,
    )


def from_anywhere(config: Config) -> Config:
    """The settings that name the same file also to a process with another current directory."""
    if is_postgres(config.url) or (path := sqlite_path(config.url)) == ":memory:":
        return config
    return config.with_arguments(url=f"sqlite:///{quote(str(Path(path).absolute()))}")


def for_another_process(config: Config, store: Store) -> Config:
    """The settings with which another process opens the same store: a private file is named by its path."""
    if isinstance(store, SqliteStore) and config.url == ":memory:":
        return config.with_arguments(url=f"sqlite:///{quote(store.path)}")
    return config


async def status_of(config: Config) -> StoreStatus:
    """What is there, told without changing it."""
    if not is_postgres(config.url):
        return await in_new_thread(functools.partial(store_status, sqlite_path(config.url)))
    store = _postgres(config)
    try:
        return await store.status()
    finally:
        await store.close()


async def migration_plan(config: Config) -> str:
    """The SQL that `migrate` would run now; empty where there is nothing to do."""
    if not is_postgres(config.url):
        path = sqlite_path(config.url)
        pending = (await in_new_thread(functools.partial(store_status, path))).pending
        return "\n".join(f"-- {name}\n{script}" for _, name, script in sqlite_migrations() if name in pending)
    store = _postgres(config)
    try:
        return await store.migration_plan()
    finally:
        await store.close()


def grants(config: Config, roles: Sequence[tuple[str, str]]) -> str:
    """The SQL that gives roles (by duty) their rights; ConfigError where the store has none to give."""
    if not is_postgres(config.url):
        raise ConfigError(f"{config.url} is a file, whose rights are the file's: only PostgreSQL has roles")
    text: str = _postgres_module("holdfast.stores.postgres.grants").grants(config.schema, roles)
    return text


async def migrate(config: Config) -> None:
    """Bring the schema up to date. A SQLite store does it by itself whenever it is opened."""
    if is_postgres(config.url):
        postgres = _postgres(config)
        try:
            await postgres.migrate()
        finally:
            await postgres.close()
    else:
        store = make_store(config)
        await store.open()
        await store.close()


def _postgres(config: Config, *, clock: Clock | None = None) -> PostgresStore:
    store: PostgresStore = _postgres_module("holdfast.stores.postgres").PostgresStore(
        config.url, schema=config.schema, pooled=config.pooled, watermarks=_watermarks(config), clock=clock
    )
    return store


def _optional(module: str, what: str, *, extra: str) -> Any:
    try:  # only when it is used: a worker on SQLite stays small, and needs nothing installed
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{what} needs the package {error.name}: pip install 'holdfast[{extra}]'") from error


def _postgres_module(name: str) -> Any:
    return _optional(name, "a PostgreSQL store", extra="postgres")


def _watermarks(config: Config) -> Watermarks:
    return Watermarks(config.high_watermark, config.low_watermark)
