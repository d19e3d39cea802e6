"""The command where a service manager or a shell has closed the standard streams."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cli.processes import COMMAND, environment
from tests.integration.scene import PATIENCE_S, scene

SHOP = """
from pathlib import Path
from holdfast import Holdfast
hf = Holdfast("sqlite:///jobs.db")

@hf.task
async def touch() -> None:
    print("a line that is for nobody")
    Path("ran").touch()

@hf.on_startup
async def begin() -> None:
    await touch.enqueue()
"""


@scene
async def test_a_worker_needs_no_standard_streams(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    command = " ".join((*COMMAND, "worker", "shop:hf", "<&-", ">&-", "2>&-"))
    process = await asyncio.create_subprocess_shell(
        f"exec {command}", cwd=tmp_path, env=environment(HOLDFAST_SPARES="0")
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (tmp_path / "ran").exists() and process.returncode is None:
                await asyncio.sleep(0.01)
        assert process.returncode is None, "it has ended by itself"
        process.terminate()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
