"""`holdfast api` and the API of `holdfast dev`: where they listen, what they print, how they end."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.cli.processes import COMMAND, PATIENCE_S, await_line, environment, hold, patience

SHOP = """
from holdfast import Holdfast

hf = Holdfast("sqlite:///jobs.db")

@hf.task
async def add(a: int, b: int = 1) -> int:
    return a + b
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    assert hold("migrate", "-A", "shop:hf", cwd=tmp_path).code == 0
    return tmp_path


@contextlib.contextmanager
def serving(cwd: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`holdfast api` on a free port, and its address; told to stop at the end, which it has to do well."""
    command = [*COMMAND, "api", "shop:hf", "--port", "0", *words]
    with (
        subprocess.Popen(command, cwd=cwd, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        address = await_line(process, "is open").split()[1]
        yield process, address
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_it_serves_an_app_to_whoever_has_a_key(shop: Path) -> None:
    key = hold("keys", "create", "x", "-s", "submit", "-s", "read", "-A", "shop:hf", cwd=shop).out.strip()
    with serving(shop) as (_, address):
        assert address.startswith("http://127.0.0.1:")
        answer = httpx.post(f"{address}/jobs", json={"task": "shop.add", "args": [1]})
        assert answer.status_code == 401
        own = {"Authorization": f"Bearer {key}"}
        answer = httpx.post(f"{address}/jobs", json={"task": "shop.add", "args": [1]}, headers=own)
        assert answer.status_code == 202
        assert "server" not in answer.headers
    [job] = hold("jobs", "list", "--json", "-A", "shop:hf", cwd=shop).json_lines
    assert job["id"] == answer.json()["id"]
    [listed] = hold("keys", "list", "--json", "-A", "shop:hf", cwd=shop).json_lines
    assert listed["used_at"] is not None, "written down at the end"


def test_it_listens_elsewhere_only_once_there_is_a_key(shop: Path) -> None:
    refused = hold("api", "shop:hf", "--host", "0.0.0.0", "--port", "0", cwd=shop)
    assert refused.code == 2
    assert "0.0.0.0 can be reached from elsewhere, and there is no key yet" in refused.err
    revoked = hold("keys", "create", "x", "-s", "read", "-A", "shop:hf", "--json", cwd=shop).json["id"]
    assert hold("keys", "revoke", revoked, "-A", "shop:hf", cwd=shop).code == 0
    assert hold("api", "shop:hf", "--host", "0.0.0.0", "--port", "0", cwd=shop).code == 2
    with serving(shop) as (process, _):
        assert "there is no key yet" in await_line(process, "api: ")


def test_whoever_says_so_lets_anybody_in(shop: Path) -> None:
    with serving(shop, "--anyone-may-do-anything-without-a-key") as (_, address):
        assert httpx.get(f"{address}/settings").status_code == 200
        wrong = {"Authorization": "Bearer hf_AAAAAAAAAAAA_" + "a" * 43}
        assert httpx.get(f"{address}/settings", headers=wrong).status_code == 401, (
            "who comes with a key needs a right one"
        )


def test_without_an_app_tasks_are_taken_by_name(shop: Path) -> None:
    url = f"sqlite:///{shop / 'jobs.db'}"
    key = hold("keys", "create", "x", "-s", "submit", "--url", url, cwd=shop).out.strip()
    command = [*COMMAND, "api", "--url", url, "--port", "0", "--accept-unknown-tasks"]
    with (
        subprocess.Popen(command, cwd=shop, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        address = await_line(process, "is open").split()[1]
        own = {"Authorization": f"Bearer {key}"}
        answer = httpx.post(f"{address}/jobs", json={"task": "anything.at.all"}, headers=own)
        assert answer.status_code == 202
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_a_request_under_way_ends_when_the_server_is_told_to_stop(shop: Path) -> None:
    key = hold("keys", "create", "x", "-s", "submit", "-s", "read", "-A", "shop:hf", cwd=shop).out.strip()
    own = {"Authorization": f"Bearer {key}", "Prefer": "wait=30"}
    answers: list[httpx.Response] = []
    with serving(shop) as (process, address):

        def ask() -> None:
            answers.append(
                httpx.post(f"{address}/jobs", json={"task": "shop.add", "args": [1]}, headers=own, timeout=60)
            )

        asking = threading.Thread(target=ask)
        asking.start()
        while not hold("jobs", "list", "-A", "shop:hf", cwd=shop).out:
            pass  # it is under way once its job is there
        process.send_signal(signal.SIGTERM)
        job = hold("jobs", "list", "--json", "-A", "shop:hf", cwd=shop).json["id"]
        assert hold("jobs", "cancel", job, "-A", "shop:hf", cwd=shop).code == 0
        asking.join(PATIENCE_S)
        process.wait(PATIENCE_S)
    assert [answer.status_code for answer in answers] == [200]
    assert answers[0].json()["state"] == "cancelled"


def test_a_port_that_is_taken_is_told(shop: Path) -> None:
    with serving(shop) as (_, address):
        port = address.rpartition(":")[2].partition("/")[0]
        said = hold("api", "shop:hf", "--port", port, cwd=shop)
    assert (said.code, f"127.0.0.1 port {port} cannot be listened on" in said.err) == (2, True)


def test_dev_serves_the_api_and_prints_a_line_that_works(shop: Path) -> None:
    command = [*COMMAND, "dev", "shop:hf", "--api-port", "0"]
    with (
        subprocess.Popen(command, cwd=shop, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        words = shlex.split(await_line(process, "curl -H"))
        request = urllib.request.Request(words[-1], headers=dict([words[2].split(": ", 1)]))  # as curl would send it
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["tasks"][0]["name"] == "shop.add"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    kept = shop / ".holdfast" / "api_key"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text().strip() in words[2]


def test_no_api_means_none(shop: Path) -> None:
    command = [*COMMAND, "dev", "shop:hf", "--no-api"]
    with (
        subprocess.Popen(command, cwd=shop, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        await_line(process, "started, 100 jobs at once")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert "api:" not in process.stderr.read()


def test_the_demonstration_serves_it_in_its_own_process(tmp_path: Path) -> None:
    command = [*COMMAND, "demo", "--api-port", "0"]
    with (
        subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process,
        patience(process),
    ):
        words = shlex.split(await_line(process, "curl -H"))
        name, _, value = words[2].partition(": ")
        answer = httpx.get(words[-1], headers={name: value}, timeout=PATIENCE_S)
        assert (answer.status_code, "queues" in answer.json()) == (200, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("proxies", ["*", "0.0.0.0/0", "::/0", "proxy.example", "10.0.0.7,", "10.0.0.7;10.0.0.8"])
def test_not_everybody_is_believed_about_who_asks(shop: Path, proxies: str) -> None:
    said = hold("api", "shop:hf", "--port", "0", "--behind-proxy", proxies, cwd=shop)
    assert (said.code, "is no address of a proxy" in said.err) == (2, True)


def test_with_reload_every_other_option_holds(shop: Path) -> None:
    key = hold("keys", "create", "x", "-s", "submit", "-A", "shop:hf", cwd=shop).out.strip()
    command = [*COMMAND, "api", "shop:hf", "--port", "0", "--reload", "--accept-unknown-tasks"]
    with (
        subprocess.Popen(command, cwd=shop, env=environment(), stderr=subprocess.PIPE, text=True) as process,
        patience(process),
    ):
        address = await_line(process, "is open").split()[1]
        own = {"Authorization": f"Bearer {key}"}
        assert httpx.post(f"{address}/jobs", json={"task": "any.task"}, headers=own).status_code == 202
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("days", ["1e308", "inf", "0", "100000"])
def test_a_key_lasts_from_a_second_to_ten_years(shop: Path, days: str) -> None:
    said = hold("keys", "create", "x", "-s", "read", "--expires", days, "-A", "shop:hf", cwd=shop)
    assert (said.code, "ten years" in said.err) == (2, True)
