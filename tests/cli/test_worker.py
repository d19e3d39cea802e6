"""`holdfast worker`: signals drain it, and it logs what went wrong."""

from __future__ import annotations

import signal

from tests.cli.conftest import Shop
from tests.cli.processes import PATIENCE_S, await_line, hold, on_terminal, starting, working


def test_ctrl_c_drains_the_worker(shop: Shop) -> None:
    with working(shop.path, "--verbose") as process:
        job_id = hold("enqueue", "shop:hf", "shop.rows", "1", cwd=shop.path).out.strip()
        await_line(process, f"job {job_id} shop.rows: started")
        process.send_signal(signal.SIGINT)
        await_line(process, "claims nothing more and waits for 1 jobs")
        (shop.path / "go-1").touch()
        await_line(process, f"job {job_id} shop.rows: succeeded")
        await_line(process, "stopped")
        assert process.wait(PATIENCE_S) == 0
    assert hold("jobs", "show", job_id, "-A", "shop:hf", "--json", cwd=shop.path).json["result"] == 1


def test_ctrl_c_on_a_terminal_ends_it_well(shop: Shop) -> None:
    ended = on_terminal("worker", "shop:hf", "-v", cwd=shop.path, answers=[("shop.add: succeeded", "\x03")])
    assert ended.code == 0
    assert "stopped" in ended.out
    assert "Traceback" not in ended.out


def test_an_app_that_logs_by_itself_is_left_alone(shop: Shop) -> None:
    text = (shop.path / "shop.py").read_text("utf-8")
    (shop.path / "shop.py").write_text(
        "import logging\nlogging.basicConfig(format='OWN %(message)s')\n" + text, "utf-8"
    )
    with starting(shop.path, "shop:hf") as process:
        assert await_line(process, "started").startswith("OWN worker ")


def test_an_app_without_tasks_is_remarked_on(shop: Shop) -> None:
    (shop.path / "empty.py").write_text("from holdfast import Holdfast\nhf = Holdfast('sqlite:///e.db')\n", "utf-8")
    with starting(shop.path, HOLDFAST_APP="empty:hf") as process:
        assert "app empty:hf has no tasks" in await_line(process, "WARNING")
        await_line(process, "started")
