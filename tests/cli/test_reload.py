"""`holdfast worker --reload`: new code is taken up, nothing that runs is lost, wrong code can be mended."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Shop
from tests.cli.processes import COMMAND, await_line, environment, hold, on_terminal, patience, starting

from holdfast.cli.exits import Exit, Refused
from holdfast.cli.sources import Sources, shortly


def rewrite(shop: Shop, old: str, new: str) -> str:
    """Change the shop's source as an editor does; returns what was there."""
    text = (shop.path / "shop.py").read_text("utf-8")
    assert old in text
    (shop.path / "shop.py").write_text(text.replace(old, new), "utf-8")
    return text


def test_a_change_drains_the_worker_and_starts_one_with_the_new_code(shop: Shop) -> None:
    with starting(shop.path, "shop:hf", "--reload", "--verbose") as process:
        job_id = hold("enqueue", "shop:hf", "shop.rows", "1", cwd=shop.path).out.strip()
        await_line(process, f"job {job_id} shop.rows: started")
        rewrite(shop, "return count", "return -count")
        assert await_line(process, "changed") == "reload: changed: shop.py; draining, then restarting\n"
        await_line(process, "waits for 1 jobs")
        (shop.path / "go-1").touch()
        await_line(process, f"job {job_id} shop.rows: succeeded")
        await_line(process, "stopped")
        await_line(process, "started, 100 jobs at once")
        assert hold("enqueue", "shop:hf", "shop.rows", "1", "--wait", cwd=shop.path).out == "-1\n"
        process.send_signal(signal.SIGTERM)
        await_line(process, "stopped")
    job = hold("jobs", "show", job_id, "-A", "shop:hf", "--json", cwd=shop.path).json
    assert (job["result"], job["attempts"]) == (1, [])


def test_wrong_code_is_told_and_waits_to_be_mended(shop: Shop) -> None:
    with starting(shop.path, "shop:hf", "--reload", "-q", "default", "-c", "7") as process:
        await_line(process, "started, 7 jobs at once, queues: default")
        text = rewrite(shop, "async def add", "async deaf add")
        await_line(process, "holdfast: module 'shop' cannot be imported: SyntaxError")
        await_line(process, "reload: the worker ended with exit code 2; the next change starts it again")
        (shop.path / "shop.py").write_text(text, "utf-8")
        assert await_line(process, "changed") == "reload: changed: shop.py; starting\n"
        await_line(process, "started, 7 jobs at once, queues: default")


def test_it_ends_well_where_there_is_nothing_to_drain(shop: Shop) -> None:
    (shop.path / "shop.py").write_text("1 / 0", "utf-8")
    with starting(shop.path, "shop:hf", "--reload", "--debug") as process:
        await_line(process, "Traceback")
        await_line(process, "the next change starts it again")


def test_ctrl_c_drains_it_once(shop: Shop) -> None:
    hold("enqueue", "shop:hf", "shop.rows", "1", cwd=shop.path)
    steps = [("shop.rows: started", "\x03"), ("waits for 1 jobs", shop.path / "go-1")]
    ended = on_terminal("worker", "shop:hf", "--reload", "-v", cwd=shop.path, answers=steps)
    assert ended.code == 0
    assert "shop.rows: succeeded" in ended.out
    assert ended.out.rstrip().endswith("stopped")
    assert "Traceback" not in ended.out


def test_who_does_not_want_to_wait_presses_ctrl_c_again(shop: Shop) -> None:
    hold("enqueue", "shop:hf", "shop.rows", "1", cwd=shop.path)
    steps = [("shop.rows: started", "\x03"), ("waits for 1 jobs", "\x03")]
    ended = on_terminal("worker", "shop:hf", "--reload", "-v", cwd=shop.path, answers=steps)
    assert ended.code == Exit.HANDED_BACK
    assert "shop.rows: succeeded" not in ended.out
    [job] = hold("jobs", "list", "-t", "shop.rows", "-A", "shop:hf", "--json", cwd=shop.path).json_lines
    assert (job["state"], [run["cause"] for run in job["attempts"]]) == ("ready", ["handed_back"])


def test_the_worker_does_not_outlive_a_killed_parent(shop: Shop) -> None:
    command = [*COMMAND, "worker", "shop:hf", "--reload"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, cwd=shop.path, env=environment(), stderr=pipe, text=True) as process,
        patience(process),
    ):
        await_line(process, "started")
        process.kill()
        await_line(process, "stopped")
        assert process.stderr is not None
        assert process.stderr.read() == ""  # to its end: nobody is left who could write
    assert hold("workers", "-A", "shop:hf", cwd=shop.path).out == ""


def test_sources_and_settings_are_watched_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".work").mkdir()
    sources = Sources.of("shop:hf", named=[tmp_path / ".work"])
    below = ["shop.py", "a/b/c.py", "holdfast.toml", "pyproject.toml", "jobs.db", "shop.pyc", ".venv/x.py"]
    below += ["__pycache__/x.py", "venv/lib/x.py", "README.md", ".git/x.py", "a/.x.py"]
    watched = [name for name in below if sources.match(None, str(tmp_path / ".work" / name))]
    assert watched == ["shop.py", "a/b/c.py", "holdfast.toml", "pyproject.toml"]
    assert not sources.match(None, str(tmp_path / "other.py"))
    with pytest.raises(Refused, match="there is no directory"):
        Sources.of("shop:hf", named=[tmp_path / "nowhere"])


def test_the_package_is_watched_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here/inner", "lib/shop/jobs", "installed/site-packages/bought"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('nobody may import this')", "utf-8")
    (tmp_path / "lib" / "single.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    for path in ("lib", "installed/site-packages"):
        monkeypatch.syspath_prepend(tmp_path / path)
    here = tmp_path / "here"
    for app, expected in {
        "inner:hf": (here,),
        "shop.jobs:hf": (here, tmp_path / "lib" / "shop"),
        "single:hf": (here, tmp_path / "lib"),
        "bought:hf": (here,),
        "nowhere.at.all:hf": (here,),
    }.items():
        assert Sources.of(app).directories == expected


def test_changed_files_are_told_from_here_and_not_all_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert shortly([str(tmp_path / "a" / "b.py"), "/0/elsewhere/c.py"]) == "/0/elsewhere/c.py, a/b.py"
    assert shortly([str(tmp_path / f"{n}.py") for n in range(5)]) == "0.py, 1.py, 2.py and 2 more"
