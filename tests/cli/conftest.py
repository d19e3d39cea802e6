"""A shop to work on: a directory with an app and, in its store, a job of every kind that tests ask for."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.processes import SHOP

from holdfast import Holdfast, PermanentError


class Shop(NamedTuple):
    """The directory, and the ids of what is in its store."""

    path: Path
    done: str
    dead: tuple[str, ...]
    ready: tuple[str, ...]
    later: str

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path / 'jobs.db'}"


@pytest.fixture(scope="session")
def filled_shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Made once, to be copied: no test works in it."""
    path = tmp_path_factory.mktemp("filled")
    (path / "shop.py").write_text(SHOP, "utf-8")
    return asyncio.run(_filled(path))


@pytest.fixture
def shop(tmp_path: Path, filled_shop: Shop) -> Shop:
    return copied(filled_shop, tmp_path)


def copied(shop: Shop, path: Path) -> Shop:
    """The same shop in another directory."""
    shutil.copytree(shop.path, path, dirs_exist_ok=True)
    return shop._replace(path=path)


async def _filled(path: Path) -> Shop:
    hf = Holdfast(f"sqlite:///{path / 'jobs.db'}")

    @hf.task(name="shop.add")
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @hf.task(name="shop.charge", queue="bank")
    async def charge(customer: str, cents: int = 0) -> str:
        raise PermanentError(f"{cents} cents \x1b[31m\tcannot be charged")

    async with hf:
        done = await add.enqueue(2, b=3)
        dead = [await charge.enqueue(name) for name in ("Ada", "Bob", "Cleo")]
        async with hf.worker():
            await done.result(timeout=20)
            for job in dead:
                async for _ in job.events():
                    pass
        ready = [await add.enqueue(number) for number in range(3)]
        later = await add.options(delay=3600).enqueue(9)
    ids = [tuple(str(job.id) for job in jobs) for jobs in (dead, ready)]
    return Shop(path, str(done.id), ids[0], ids[1], str(later.id))
