"""A worker that tells when it leads and sweeps: `python -m tests.faults.leading_worker <url> <schema> <lease_s>`.

A line `swept <seconds>` has the monotonic time at which it was last sure of its lead.
"""

from __future__ import annotations

import logging
import sys
import time

from tests.campaign.child import die_with_parent

from holdfast import Holdfast
from holdfast.upkeep import crew
from holdfast.upkeep.pruner import Sweeper


class TellingSweeper(Sweeper):
    """Notes when it asked whether it leads, and that it then went to work."""

    _sure_s = 0.0

    def off_duty_s(self) -> float:
        self._sure_s = time.monotonic()
        return super().off_duty_s()

    async def tick(self) -> float:
        print(f"swept {self._sure_s}", flush=True)
        await super().tick()
        return 0.005


def main(url: str, schema: str, lease_s: str) -> None:
    die_with_parent()
    logging.getLogger("holdfast.lead").setLevel(logging.DEBUG)
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s", stream=sys.stdout)
    crew.Sweeper = TellingSweeper  # type: ignore[misc]
    Holdfast(url, schema=schema, lease_s=float(lease_s), poll_s=0.05).run_worker()


if __name__ == "__main__":
    main(*sys.argv[1:])
