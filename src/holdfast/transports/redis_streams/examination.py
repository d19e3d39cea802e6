"""Looks at a Redis before it is used: what a person has to change is a ConfigError, anything else is waited for."""

from __future__ import annotations

from holdfast.core.errors import ConfigError
from holdfast.transports.redis_streams.wire import Refusal, Unreachable, Wire

OLDEST = (6, 2)
_DENIED = ("WRONGPASS", "NOAUTH", "NOPERM")


async def examine(wire: Wire, place: str, *, within_s: float, is_cluster: bool = False) -> str:
    """The name of this run of the server. ConfigError, or Unreachable where it can change by itself."""
    said = await _info(wire, within_s)
    version = said.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < OLDEST:
        raise ConfigError(
            f"the Redis at {place} is version {version}, and Holdfast needs {'.'.join(map(str, OLDEST))} or newer: "
            "upgrade it, or leave out the setting redis"
        )
    policy = said.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise ConfigError(
            f"the Redis at {place} drops keys when its memory is full (maxmemory-policy is {policy}): set "
            "`maxmemory-policy noeviction`, or use another Redis for Holdfast"
        )
    if said.get("cluster_enabled") == "1" and not is_cluster:
        raise ConfigError(
            f"the Redis at {place} is a node of a cluster: write redis+cluster://host:port,… in the setting redis"
        )
    if said.get("role", "master") != "master":
        raise Unreachable("it is a replica, which cannot be written to")
    return said.get("run_id", "")


def is_denied(refusal: Refusal) -> bool:
    """Whether it is about who we are."""
    return refusal.code in _DENIED or "invalid password" in str(refusal).lower()


def as_config_error(refusal: Refusal, place: str) -> ConfigError | None:
    """What a person has to change about a refused login; None for other refusals."""
    if is_denied(refusal):
        return ConfigError(
            f"the Redis at {place} does not let us in ({refusal}): correct user and password in the setting redis, or "
            "give that user the rights for EVAL, INFO and streams"
        )
    if refusal.code == "ERR" and "DB index is out of range" in str(refusal):
        return ConfigError(f"the Redis at {place} has no such database: {refusal}")
    return None


async def _info(wire: Wire, within_s: float) -> dict[str, str]:
    text = await wire.ask("INFO", within_s=within_s)
    if not isinstance(text, bytes):
        raise Unreachable(f"what answers is no Redis: to INFO it says {str(text)[:40]!r}")
    lines = text.decode("utf-8", "replace").splitlines()
    return {name: value for name, _, value in (line.partition(":") for line in lines) if value}
