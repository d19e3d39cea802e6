"""What simulated jobs do that have gates: they share a printer, keep a pace, fail together, and are one of a kind."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tests.simulation.replaced import current_process
from tests.simulation.scene import Scene

from holdfast.core.limit_options import Breaker, Limit, Rate
from holdfast.core.once_options import Unique, once_of
from holdfast.worker.context import current_job

PRINTER: Final = "printer"
BANK: Final = "bank"

#: Of each task here, what it says beside what all say.
FLOWING: Final[dict[str, dict[str, Any]]] = {
    "printing": {"limits": (Limit(2, name=PRINTER),)},
    "scanning": {"limits": (Limit(1, name="scanner", key=lambda n, **_: n % 2), Limit(2, name=PRINTER))},
    "posting": {"rates": (Rate("1/2s", name="post"),)},
    "hurrying": {"rates": (Rate("1/2s", name="post"),), "limits": (Limit(2, name=PRINTER),)},
    "banking": {"breaker": Breaker(BANK, failures=2, window=5.0, open_for=0.5)},
    "skipping": {"limits": (Limit(1, name="report", when_full="skip"),)},
    "replacing": {"limits": (Limit(1, name="build", when_full="replace"),)},
    "single": {"once": once_of(Unique(by=lambda n, **_: n % 3))},
}


async def flowing(scene: Scene, n: int) -> int:
    """The body of most of them."""
    job = current_job()
    with scene.story.told(job, current_process()):
        await asyncio.sleep(n % 5 / 4)
        scene.story.effect(job)
        return n


async def failing(scene: Scene, n: int) -> int:
    """The bank is down at times, for all."""
    job = current_job()
    with scene.story.told(job, current_process()):
        await asyncio.sleep(n % 3 / 20)
        if int(scene.world.now_s) % 3 == 0:
            raise ConnectionError("the bank does not answer")
        scene.story.effect(job)
        return n
