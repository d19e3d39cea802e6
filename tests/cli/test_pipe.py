"""In a pipe: lines of fields, JSON with stable names, and no fuss when the reader goes away."""

from __future__ import annotations

import os
import re
import subprocess

from tests.cli.conftest import Shop
from tests.cli.processes import COMMAND, PATIENCE_S, environment, hold, hold_alone


def test_a_list_is_lines_of_fields_without_a_heading(shop: Shop) -> None:
    ended = hold("jobs", "list", "--url", shop.url, cwd=shop.path)
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert ended.code == 0
    assert [row[0] for row in rows] == [shop.later, *reversed(shop.ready), *reversed(shop.dead), shop.done]
    assert {len(row) for row in rows} == {8}
    assert rows[-1][1:7] == ["succeeded", "shop.add", "default", "5", "1/5", "-"]
    assert "\x1b" not in ended.out
    assert ended.err == ""


def test_what_a_task_wrote_forges_neither_fields_nor_colours(shop: Shop) -> None:
    ended = hold("dead", "list", "--url", shop.url, cwd=shop.path)
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert {len(row) for row in rows} == {7}
    assert rows[0][-1] == r"holdfast.PermanentError: 0 cents \x1b[31m\tcannot be charged"


def test_a_list_as_json_is_one_document_per_line(shop: Shop) -> None:
    jobs = hold("jobs", "list", "-s", "ready", "-n", "2", "--url", shop.url, "--json", cwd=shop.path).json_lines
    assert [(job["id"], job["state"], job["args"]) for job in jobs] == [
        (shop.ready[2], "ready", [2]),
        (shop.ready[1], "ready", [1]),
    ]
    [bank, default] = hold("queues", "list", "--url", shop.url, "--json", cwd=shop.path).json_lines
    assert (bank["name"], bank["dead"], bank["paused"]) == ("bank", 3, False)
    assert (default["name"], default["ready"], default["scheduled"]) == ("default", 3, 1)
    assert set(default["rates"]) == {"enqueued_per_s", "started_per_s", "ended_per_s", "over_s"}
    [_, line] = hold("queues", "list", "--url", shop.url, cwd=shop.path).out.splitlines()
    assert line.split("\t")[-2] == f"{default['rates']['enqueued_per_s']:.1f}"


def test_one_job_is_a_document_or_a_line_per_field(shop: Shop) -> None:
    job = hold("jobs", "show", shop.dead[0], "--url", shop.url, "--json", cwd=shop.path).json
    assert (job["state"], job["reason"], job["error"]["type"]) == ("dead", "permanent", "holdfast.PermanentError")
    assert [run["cause"] for run in job["attempts"]] == ["dead"]
    assert job["explanation"].endswith("ended dead: permanent")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", job["created_at"])

    lines = hold("jobs", "show", shop.done, "--url", shop.url, cwd=shop.path).out.splitlines()
    fields = dict(line.split("\t") for line in lines)
    assert (fields["id"], fields["args"], fields["kwargs"], fields["result"]) == (shop.done, "[2]", '{"b": 3}', "5")


def test_a_reader_that_goes_away_ends_it_silently(shop: Shop) -> None:
    read, write = os.pipe()
    os.close(read)  # as `| head` has, by the time that there is more to write
    for words in (["jobs", "list", "--url", shop.url], ["--help"]):
        ended = subprocess.run(
            [*COMMAND, *words],
            cwd=shop.path,
            env=environment(),
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
        assert (ended.returncode, ended.stderr) == (141, b"")
    os.close(write)


def test_a_terminal_that_knows_no_such_letters_is_no_reason_to_fail(shop: Shop) -> None:
    words = ("enqueue", "shop:hf", "shop.charge", "Zoë", "--json")
    job_id = hold_alone(*words, cwd=shop.path, PYTHONIOENCODING="ascii").json["id"]
    ended = hold_alone("jobs", "show", job_id, "-A", "shop:hf", cwd=shop.path, PYTHONIOENCODING="ascii")
    assert (ended.code, ended.err) == (0, "")
    assert r"Zo\xeb" in ended.out
