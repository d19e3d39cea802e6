"""`holdfast doctor` finds what is wrong, says what to do, shows no secret and changes nothing."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Shop
from tests.cli.processes import Ended, await_line, hold, on_terminal, working


def findings(ended: Ended) -> dict[str, dict[str, str]]:
    return {each["subject"]: each for each in ended.json_lines}


def test_a_sound_store_is_told_with_its_settings_and_their_origins(shop: Shop) -> None:
    (shop.path / "holdfast.toml").write_text("threads = 3\n", "utf-8")
    ended = hold("doctor", "-A", "shop:hf", "--json", cwd=shop.path, HOLDFAST_CONCURRENCY="7")
    found = findings(ended)
    assert ended.code == 0
    assert found["setting threads"]["found"] == f"3 (file {shop.path / 'holdfast.toml'})"
    assert found["setting concurrency"]["found"] == "7 (variable HOLDFAST_CONCURRENCY)"
    assert found["setting lease_s"]["found"] == "5.0 (argument lease_s)"
    assert found["app"]["found"] == "shop:hf with 3 tasks"
    assert {subject for subject, each in found.items() if each["verdict"] != "ok"} == {"workers", "dead letters"}
    assert found["workers"]["remedy"] == "start `holdfast worker shop:hf`"
    assert {"python", "engine", "schema", "disk", "permissions", "clock"} <= set(found)


def test_what_is_wrong_fails_it(shop: Shop) -> None:
    (shop.path / "jobs.db").write_bytes(b"not a database, for certain" * 100)
    ended = hold("doctor", "-A", "shop:hf", "--json", cwd=shop.path, HOLDFAST_FAILPOINTS="")
    assert ended.code == 1
    assert findings(ended)["store"]["verdict"] == "fail"
    assert "is not a SQLite database" in findings(ended)["store"]["found"]


def test_a_server_out_of_reach_is_a_finding_and_its_password_is_masked(tmp_path: Path) -> None:
    ended = hold("doctor", "--json", cwd=tmp_path, HOLDFAST_URL="postgresql://shop:hidden@127.0.0.1:1/shop")
    found = findings(ended)
    assert ended.code == 1
    assert found["setting url"]["found"] == "postgresql://shop:***@127.0.0.1:1/shop (variable HOLDFAST_URL)"
    assert found["store"]["verdict"] == "fail"
    assert "127.0.0.1:1/shop (schema holdfast) cannot be reached" in found["store"]["found"]
    assert found["store"]["remedy"] == "start the server, or name another with `--url`; it may also be the network"
    assert "hidden" not in ended.out + ended.err


def test_what_nobody_knows_how_to_run_is_told(shop: Shop) -> None:
    hold("enqueue", "--url", shop.url, "shop.ad", cwd=shop.path)
    with working(shop.path) as worker:
        await_line(worker, "parked")
        ended = hold("doctor", "-A", "shop:hf", "--json", cwd=shop.path)
    assert findings(ended)["parked jobs"]["verdict"] == "warn"
    assert findings(ended)["parked jobs"]["found"] == "1"
    assert "`holdfast jobs explain ID`" in findings(ended)["parked jobs"]["remedy"]


def test_it_makes_no_store(tmp_path: Path) -> None:
    ended = on_terminal("doctor", cwd=tmp_path, width=100)
    assert ended.code == 0
    assert "warn: schema: holdfast.db does not exist yet; `holdfast migrate`, or start a worker" in ended.out
    assert list(tmp_path.iterdir()) == []


def test_anybody_may_write_is_a_warning(shop: Shop) -> None:
    (shop.path / "jobs.db").chmod(0o666)
    ended = hold("doctor", "--url", shop.url, cwd=shop.path)
    [line] = [line for line in ended.out.splitlines() if "anybody may write it" in line]
    assert line.startswith("warn\tpermissions\t")
    assert line.endswith(f"`chmod o-w {shop.path / 'jobs.db'}`")
