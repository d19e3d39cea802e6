"""`python -m tests.http.crowd_server`: an API with ten jobs to follow. Prints its address, a key and the jobs; then it
does what each line of its input says, and answers with a line of what it has: streams, sockets, memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
from pathlib import Path

from tests.http.served import listening, served

from holdfast.http import HttpLimits
from holdfast.http.connections import Connection

JOBS = 10
LETTER = "x" * 16_384


def _memory() -> int:
    gc.collect()
    [line] = [each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def _sockets() -> int:
    names = []
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of this very look
            names.append(str(each.readlink()))
    return sum(name.startswith("socket:") for name in names)


async def main() -> None:
    """Serve until whoever started us closes our input."""
    Connection.slowest_s = 1.0
    limits = HttpLimits(stalled_s=1.0, quiet_s=5.0, stream_s=600.0)
    async with served(limits=limits) as api:
        jobs = [await api.hf.enqueue("shop.mail", LETTER) for _ in range(JOBS)]
        async with listening(api, unread=16_384) as (address, _):
            print(
                json.dumps([address, await api.key("read", "read-payload"), [str(job.id) for job in jobs]]), flush=True
            )
            while command := (await asyncio.to_thread(sys.stdin.readline)).strip():
                match command:
                    case "look":
                        pass
                    case "work":
                        async with api.hf.worker():
                            await asyncio.gather(*(job.result() for job in jobs))
                    case priority:
                        await api.hf.jobs.move([job.id for job in jobs], priority=int(priority))
                found = {"streams": api.app.server.streams.count, "sockets": _sockets(), "memory": _memory()}
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
