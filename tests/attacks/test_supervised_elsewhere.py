"""An app that changes the current directory when it is imported, with a store whose path is relative to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.processes import COMMAND, environment
from tests.integration.scene import PATIENCE_S, scene

from holdfast import Holdfast

SHOP = """
import os
from holdfast import Holdfast
os.chdir("elsewhere")
hf = Holdfast("sqlite:///jobs.db", lease_s=3600)

@hf.task(timeout=None)
async def die_once() -> int:
    if not os.path.exists("died"):
        open("died", "w").close()
        os._exit(1)
    return 7
"""


@scene
async def test_jobs_are_handed_back_to_the_store_of_the_worker(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "elsewhere").mkdir()
    async with Holdfast(f"sqlite:///{tmp_path}/elsewhere/jobs.db") as hf:
        job = await hf.enqueue("shop.die_once")
        process = subprocess.Popen([*COMMAND, "worker", "shop:hf"], cwd=tmp_path, env=environment(HOLDFAST_SPARES="0"))
        try:
            assert await job.result(timeout=PATIENCE_S) == 7
        finally:
            process.kill()
            process.wait(PATIENCE_S)
    assert not (tmp_path / "jobs.db").exists(), "nobody asked for another one"
