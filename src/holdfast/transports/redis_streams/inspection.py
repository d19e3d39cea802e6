"""Looks at a Redis as `doctor` does: how full it is, what it knows of each queue, and what is in the way."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.core.errors import ConfigError
from holdfast.transports.redis_streams.connection import Connection
from holdfast.transports.redis_streams.keys import Keys, lanes_of
from holdfast.transports.redis_streams.line import Way
from holdfast.transports.redis_streams.scripts import INSPECT
from holdfast.transports.redis_streams.wire import Refusal, Unreachable
from holdfast.transports.status import LaneStatus, ServerStatus, TransportStatus


async def inspect(connection: Connection, keys: Keys, queues: Collection[str]) -> TransportStatus:
    """ConfigError where a person has to act before it is used at all."""
    line = connection.line()
    try:
        await connection.attempt()
        servers = [await _server(line, key) for key in connection.key_of_each_server()]
        lanes = [await _lanes(line, keys, queue) for queue in sorted(queues)]
    except ConfigError:
        raise
    except (Unreachable, Refusal) as error:
        return TransportStatus(connection.place, str(error))
    finally:
        connection.forget(line)
    return TransportStatus(connection.place, "", tuple(servers), tuple(lanes))


async def _server(line: Way, key: str) -> ServerStatus:
    said: dict[str, str] = {}
    for section in ("server", "memory"):
        text = (await line.ask("INFO", section, key=key)).decode("utf-8", "replace")
        said |= {name: value for name, _, value in (row.partition(":") for row in text.splitlines()) if value}
    product, version = ("Valkey", "valkey_version") if "valkey_version" in said else ("Redis", "redis_version")
    return ServerStatus(
        f"port {said.get('tcp_port', '?')}",
        f"{product} {said.get(version, '?')}",
        int(said.get("used_memory", 0)),
        int(said.get("maxmemory", 0)),
    )


async def _lanes(line: Way, keys: Keys, queue: str) -> LaneStatus:
    names = [keys.meta(queue), *map(keys.stream, lanes_of(queue))]
    entries, read, idle_ms, filled, foreign = await line.run(INSPECT, names, [await line.run_id(names[0])])
    in_the_way = tuple(names[n - 1] for n in foreign)
    return LaneStatus(queue, entries, read, idle_ms / 1000, bool(filled), in_the_way)
