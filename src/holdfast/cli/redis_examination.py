"""What `doctor` looks at of a Redis beside the store."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.app import backends
from holdfast.cli.finding import Finding
from holdfast.config import Config
from holdfast.core.errors import ConfigError
from holdfast.core.shown import counted
from holdfast.transports.status import LaneStatus, ServerStatus, TransportStatus

_MIB = 1024**2
#: Of what a server may use: from here on it will soon refuse what is written.
_NEARLY_FULL = 0.9
#: What a dead worker had read is announced again within a few seconds, where anybody lives.
_LONG_READ_S = 30.0


async def examine_redis(config: Config) -> list[Finding]:
    """Nothing where the settings name none. One that fails is refused by every app; one that warns is done without."""
    try:
        status = await backends.transport_status_of(config)
    except ConfigError as error:
        return [Finding("fail", "redis", str(error), "mend what the sentence names, or unset HOLDFAST_REDIS")]
    if status is None:
        return []
    if status.error:
        remedy = "start it or mend the way to it; until then work comes from the store, and nothing is lost"
        return [Finding("warn", "redis", f"{status.place} is not used: {status.error}", remedy)]
    return [*_servers(status), *_queues(status.queues)]


def _servers(status: TransportStatus) -> Iterator[Finding]:
    versions = ", ".join(sorted({server.version for server in status.servers}))
    yield Finding("ok", "redis", f"{status.place}, {versions}, noeviction")
    for server in status.servers:
        yield _memory(server, several=len(status.servers) > 1)


def _memory(server: ServerStatus, *, several: bool) -> Finding:
    subject = f"redis memory, {server.place}" if several else "redis memory"
    used = f"{server.used_bytes / _MIB:.1f} MiB used"
    if not server.most_bytes:
        return Finding("ok", subject, f"{used}, without a bound")
    found = f"{used} of {server.most_bytes / _MIB:.1f}"
    if server.used_bytes < _NEARLY_FULL * server.most_bytes:
        return Finding("ok", subject, found)
    return Finding("warn", subject, found, "raise maxmemory, or give Holdfast a Redis of its own: full, it is not used")


def _queues(queues: tuple[LaneStatus, ...]) -> Iterator[Finding]:
    for name in (name for queue in queues for name in queue.foreign):
        remedy = f"somebody else has written it: `DEL {name}`; until then Redis is not used"
        yield Finding("fail", "redis keys", f"{name} is not of the kind that Holdfast keeps there", remedy)
    entries, read = sum(queue.entries for queue in queues), sum(queue.read for queue in queues)
    oldest_s = max((queue.read_for_s for queue in queues), default=0.0)
    found = f"{counted(entries, 'announcement')}, {read} read and not yet dealt with"
    found += f", the oldest for {oldest_s:.0f} s" if read else ""
    if read and oldest_s > _LONG_READ_S:
        yield Finding("warn", "redis streams", found, "have a worker running: the leading one gives them to others")
    else:
        yield Finding("ok", "redis streams", found)
    if unfilled := [queue.queue for queue in queues if not queue.is_filled]:
        remedy = "have a worker running: the leading one tells a new or emptied Redis of all ready jobs"
        yield Finding("warn", "redis knows", f"not yet what is ready in {', '.join(unfilled)}", remedy)
    else:
        yield Finding("ok", "redis knows", f"what is ready in {counted(len(queues), 'queue')}")
