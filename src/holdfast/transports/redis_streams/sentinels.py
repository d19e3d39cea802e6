"""The way to the master that Sentinels name: one of them may not have heard yet that another has taken its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.core.errors import ConfigError
from holdfast.transports.redis_streams.address import Address
from holdfast.transports.redis_streams.examination import is_denied
from holdfast.transports.redis_streams.slots import Place
from holdfast.transports.redis_streams.wire import CONNECT_S, Refusal, Unreachable, Untrusted, Wire, log_in, open_wire


async def enter_master(address: Address, enter: Callable[[Place], Awaitable[Wire]]) -> Wire:
    """A connection to the first server that a Sentinel names and that `enter` finds to be a master.

    A Sentinel that was cut off names who was master before: that one is away, or a replica, and the next Sentinel is
    asked. What a person has to mend is raised when none of them led to a master.
    """
    heard: list[str] = []
    tried: set[Place] = set()
    to_mend: ConfigError | Untrusted | None = None
    share_s = CONNECT_S / len(address.hosts)
    for host, port in address.hosts:
        said = f"{host}:{port}"
        try:
            async with asyncio.timeout(share_s):  # of the question alone: a master far away takes its own time
                named = await _ask(address, host, port, within_s=share_s)
            if named is None:
                heard.append(f"{said} knows no master {address.master}")
                continue
            said += f" says {named[0]}:{named[1]}"
            if named not in tried:
                tried.add(named)
                return await enter(named)
            heard.append(f"{said} as well")
        except (ConfigError, Untrusted) as error:
            to_mend = to_mend or error
        except (Unreachable, Refusal, TimeoutError) as error:
            heard.append(f"{said}: {str(error) or 'no answer in time'}")
    raise to_mend or Unreachable(f"no Sentinel leads to the master {address.master}: {'; '.join(heard)}")


async def _ask(address: Address, host: str, port: int, *, within_s: float) -> Place | None:
    """Where the master is; None: it knows of none by that name."""
    wire = await open_wire(address, host, port)
    try:
        if address.sentinel_password is not None:
            await log_in(wire, None, address.sentinel_password, within_s=within_s)
        found = await wire.ask("SENTINEL", "get-master-addr-by-name", address.master or "", within_s=within_s)
    except Refusal as refusal:
        if not is_denied(refusal):
            raise
        raise ConfigError(
            f"the Sentinel at {host}:{port} does not let us in ({refusal}): correct sentinel_password in the Redis URL"
        ) from None
    finally:
        wire.close()
    match found:
        case None:
            return None
        case [bytes() as name, bytes() as number] if number.isdigit():
            return name.decode("utf-8", "replace"), int(number)
    raise Unreachable(f"{host}:{port} answers as no Sentinel does")
