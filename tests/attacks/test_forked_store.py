"""A store that is open must not be opened again by a fork of its process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import asyncio, os, sys
from holdfast import Holdfast, NotOpen

url = "sqlite:///" + sys.argv[1]

async def open_and_close():
    async with Holdfast(url) as hf:
        await hf.enqueue("work")

def in_a_fork():
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(open_and_close())
        except NotOpen as error:
            os._exit(7 if "close the app before you fork" in str(error) else 1)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

hf = Holdfast(url)
loop = asyncio.new_event_loop()
loop.run_until_complete(hf.open())
print("while it is open:", in_a_fork())
loop.run_until_complete(hf.close())
print("when it is closed:", in_a_fork())
"""


def test_a_fork_may_open_the_store_only_after_its_parent_has_closed_it(tmp_path: Path) -> None:
    """The child shared SQLite's locks with its parent: when the parent closed, jobs of the child were lost."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "jobs.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["while it is open: 7", "when it is closed: 0"], done.stderr
