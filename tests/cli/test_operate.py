"""What an operator does, from the shell, on a store with jobs in it."""

from __future__ import annotations

import asyncio
import getpass
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Shop
from tests.cli.processes import hold, parent_of, working

from holdfast import Holdfast, RetryPolicy, Unique
from holdfast.stores.sqlite.statements import migrations

WHO = f"{getpass.getuser()}@{socket.gethostname()}"
MIGRATIONS = [name for _, name, _ in migrations()]


def test_waiting_jobs_are_explained_cancelled_and_awaited(shop: Shop) -> None:
    store = ["--url", shop.url]
    why = hold("jobs", "explain", shop.ready[0], *store, cwd=shop.path)
    both = hold("jobs", "cancel", shop.later, shop.done, "-r", "no need", *store, cwd=shop.path)
    gone = hold("jobs", "wait", shop.later, shop.done, "--json", *store, cwd=shop.path)
    fine = hold("jobs", "wait", shop.done, *store, cwd=shop.path)
    assert why.out.startswith(f"job {shop.ready[0]} is ready, but no worker is running; ")
    assert (both.code, both.out) == (4, f"{shop.later}\tcancelled\n{shop.done}\tended\n")
    assert gone.code == 1
    assert [(job["state"], job["reason"]) for job in gone.json_lines] == [
        ("cancelled", f"no need (by {WHO})"),
        ("succeeded", None),
    ]
    assert (fine.code, fine.out) == (0, f"{shop.done}\tsucceeded\t-\t-\n")


def test_dead_jobs_are_mended_and_run_again(shop: Shop) -> None:
    ada, bob, _ = shop.dead
    edited = hold("dead", "edit", ada, "Ada", "cents=700", "--replay", "-A", "shop:hf", cwd=shop.path)
    assert edited.out == f"{ada}\tedited, runs again\n"
    assert hold("jobs", "retry", bob, "--url", shop.url, "--json", cwd=shop.path).json == {"id": bob, "replayed": 1}
    with working(shop.path):
        ended = hold("jobs", "wait", ada, bob, "-A", "shop:hf", "--json", cwd=shop.path)
    assert ended.code == 1
    assert [(job["state"], job["result"]) for job in ended.json_lines] == [
        ("succeeded", "Ada paid 700"),
        ("dead", None),
    ]
    assert [run["cause"] for run in ended.json_lines[1]["attempts"]] == ["replay", "dead"]


def test_a_dead_job_stays_dead_while_another_one_has_what_has_to_be_unique(shop: Shop) -> None:
    ada, bob, newer = asyncio.run(_two_that_have_to_be_unique(shop))
    store = ["--url", shop.url]
    retried = hold("jobs", "retry", ada, *store, cwd=shop.path)
    by_id = hold("dead", "replay", ada, bob, *store, cwd=shop.path)
    mended = hold("dead", "edit", ada, "Ada", "cents=7", "--replay", *store, cwd=shop.path)
    by_filter = hold("dead", "replay", "--all", "--yes", "--json", *store, cwd=shop.path)
    note = f"{ada} stays dead: it has to be unique, and job {newer} is there already"
    assert retried.code == 1
    assert f"job {ada} stays dead: shop.charge has to be unique, and job {newer} is there already" in retried.err
    assert (by_id.code, by_id.out, by_id.err) == (1, "1\n", f"note: {note}\n")
    assert mended.code == 1
    assert f"note: {ada} was edited\n" in mended.err
    assert by_filter.code == 0
    assert by_filter.json == {"replayed": 3, "kept_back": 1, "in_the_way": {ada: newer}}
    assert note in by_filter.err


async def _two_that_have_to_be_unique(shop: Shop) -> tuple[str, str, str]:
    """One of them has had a successor since."""
    hf = Holdfast(shop.url)

    @hf.task(name="shop.charge", queue="bank", unique=Unique(by="customer"), retry=RetryPolicy(max_attempts=1))
    async def charge(customer: str) -> None:
        raise ValueError

    async with hf:
        dead = [await charge.enqueue(name) for name in ("Ada", "Bob")]
        async with hf.worker(queues=["bank"]):
            for job in dead:
                async for _ in job.events():
                    pass
        newer = await charge.enqueue("Ada")
    return str(dead[0].id), str(dead[1].id), str(newer.id)


def test_dead_jobs_are_counted_replayed_and_purged_by_filter(shop: Shop) -> None:
    store = ["--url", shop.url]
    where = ["--error-type", "holdfast.PermanentError", *store]
    counted = hold("dead", "replay", *where, "--dry-run", cwd=shop.path)
    purged = hold("dead", "purge", shop.dead[0], "--yes", *store, cwd=shop.path)
    replayed = hold("dead", "replay", *where, "--yes", "--json", cwd=shop.path)
    none = hold("dead", "replay", "--all", "--yes", *store, cwd=shop.path)
    gone = hold("dead", "replay", shop.dead[1], *store, cwd=shop.path)
    assert (counted.out, purged.out, replayed.json) == ("3\n", "1\n", {"replayed": 2})
    assert (none.code, none.out) == (0, "0\n")
    assert (gone.code, gone.out) == (4, "0\n")
    assert gone.err == "note: 1 job not replayed: not dead, or not there; `holdfast jobs explain ID` says where it is\n"


def test_jobs_are_found_by_time_words_and_fingerprint(shop: Shop) -> None:
    store = ["--url", shop.url]
    all_, none, early, wrong, dead = (
        hold(*words, cwd=shop.path)
        for words in [
            ["jobs", "list", "--since", "1h", "-n", "100", *store],
            ["jobs", "list", "--until", "1h", *store],
            ["jobs", "list", "--since", "2020-01-01", "--until", "2021-01-01T00:00+01:00", *store],
            ["jobs", "list", "--since", "yesterday", *store],
            ["dead", "show", shop.dead[0], "--json", *store],
        ]
    )
    assert {line.split("\t")[0] for line in all_.out.splitlines()} >= {*shop.dead, *shop.ready, shop.done}
    assert (none.out, early.out) == ("", "")
    assert wrong.code == 2
    assert "--since 'yesterday' is not a moment" in wrong.err
    error = dead.json["error"]
    alike, words, other = (
        hold(*call, cwd=shop.path)
        for call in [
            ["dead", "list", "--fingerprint", error["fingerprint"], *store],
            ["jobs", "list", "--text", error["message"].upper(), *store],
            ["dead", "list", "--text", "nobody wrote this", *store],
        ]
    )
    assert shop.dead[0] in alike.out
    assert shop.dead[0] in words.out
    assert other.out == ""


def test_what_a_migration_would_do_is_printed(tmp_path: Path) -> None:
    url, postgres = f"sqlite:///{tmp_path / 'new.db'}", "postgresql://shop@db.invalid/shop"
    plan, grants, refused, wrong, two = (
        hold(*words, cwd=tmp_path)
        for words in [
            ["migrate", "--plan", "--url", url],
            ["migrate", "--print-grants", "api=web", "--print-grants", "worker=shop worker", "--url", postgres],
            ["migrate", "--print-grants", "api=web", "--url", url],
            ["migrate", "--print-grants", "web", "--url", postgres],
            ["migrate", "--check", "--plan", "--url", url],
        ]
    )
    assert "CREATE TABLE job (" in plan.out
    assert not (tmp_path / "new.db").exists()
    assert 'GRANT EXECUTE ON FUNCTION holdfast.claim_jobs TO "shop worker";' in grants.out
    assert refused.code == wrong.code == two.code == 2
    assert "only PostgreSQL has roles" in refused.err
    assert "`worker=shop_worker`" in wrong.err


def test_queues_are_paused_weighted_bounded_and_purged(shop: Shop) -> None:
    steps = [
        ["pause", "default"],
        ["list"],
        ["resume", "default"],
        ["weights", "default", "bulk=0", "-w", "0.5"],
        ["watermarks", "default", "--high", "2", "--low", "1"],
        ["list", "--json"],
        ["purge", "default", "--yes"],
    ]
    ended = [hold("queues", *words, "--url", shop.url, cwd=shop.path) for words in steps]
    assert {each.code for each in ended} == {0}
    paused, listed, resumed, weighted, bounded, after, purged = ended
    assert paused.out == "queue default is paused\n"
    assert listed.out.splitlines()[1].split("\t")[:3] == ["default", "paused", "3"]
    assert resumed.out == "queue default is open\n"
    assert weighted.out.startswith("queue default has weight 0.5, priorities ")
    assert bounded.out.startswith("queue default stops accepting at 2 ready or parked jobs")
    default = after.json_lines[1]
    assert (default["weight"], default["weights"]["bulk"], default["high_watermark"]) == (0.5, 0, 2)
    assert purged.out == "4\n"
    one, back = (
        hold("queues", "weights", "default", *words, "--url", shop.url, cwd=shop.path)
        for words in (["low=7", "--json"], ["--default"])
    )
    assert (one.json["weights"]["bulk"], one.json["weights"]["low"]) == (0, 7), "what is not named stays as it is"
    assert back.out == "queue default has weight 1, priorities as built in\n"
    noted = hold("queues", "pause", "defualt", "--url", shop.url, cwd=shop.path)
    assert noted.err == "note: queue defualt has had no job yet\n"


def test_queues_are_bounded_by_age(shop: Shop) -> None:
    steps = [["--high-age", "60", "--low-age", "7.5"], ["--high", "9", "--low", "3", "--json"], ["--no-age"]]
    steps += [["--default", "--json"], ["--default"], ["--default", "--high", "9", "--low", "3"], []]
    ended = [hold("queues", "watermarks", "default", *words, "--url", shop.url, cwd=shop.path) for words in steps]
    aged, both, neither, default, said, unsure, nothing = ended
    assert aged.out == "queue default stops accepting at an age of 60 s and accepts again at 7.5 s\n"
    assert both.json == {
        "name": "default",
        "high_watermark": 9,
        "low_watermark": 3,
        "high_age_s": 60.0,
        "low_age_s": 7.5,
    }
    assert neither.out == "queue default accepts whatever its age\n"
    assert default.json == {"name": "default"} | dict.fromkeys(
        ("high_watermark", "low_watermark", "high_age_s", "low_age_s")
    )
    assert said.out == "queue default stops accepting, and accepts again, as it is configured\n"
    assert (unsure.code, unsure.err.splitlines()[0]) == (2, "holdfast: give either watermarks or --default")
    assert (nothing.code, nothing.err.splitlines()[0]) == (2, "holdfast: no watermarks were given")


def test_options_of_queues_are_changed(shop: Shop) -> None:
    steps = [["--concurrency", "5", "--bypass", "critical"], ["--retry-budget", "0.2", "--json"], ["--default"]]
    steps += [["--default", "--concurrency", "5"], ["--concurrency", "many"], ["--concurrency", "0"]]
    steps += [["--bypass", "urgnet"]]
    ended = [hold("queues", "options", "default", *words, "--url", shop.url, cwd=shop.path) for words in steps]
    bounded, budgeted, default, unsure, nothing, zero, slip = ended
    said = "at most 5 at once in each process, priority 9 gets in although it is full"
    assert bounded.out == f"queue default: {said}\n"
    options = {"concurrency": 5, "retry_budget": 0.2, "bypass_priority": 9}
    assert budgeted.json == {"name": "default", "options": options}, "what is left out stays as it is"
    assert default.out == "queue default: options as each process is configured\n"
    assert (unsure.code, unsure.err.splitlines()[0]) == (2, "holdfast: give either options or --default")
    assert (nothing.code, nothing.err.splitlines()[0]) == (
        2,
        "holdfast: --concurrency 'many' is not a number, `none` or `default`",
    )
    assert (zero.code, "queue 'default': concurrency = 0 is not a whole number" in zero.err) == (2, True)
    assert (slip.code, "there is no priority 'urgnet'" in slip.err) == (2, True)
    noted = hold("queues", "options", "defualt", "--concurrency", "1", "--url", shop.url, cwd=shop.path)
    assert noted.err == "note: queue defualt has had no job yet\n"
    listed = hold("queues", "list", "--json", "--url", shop.url, cwd=shop.path).json_lines
    assert [each["options"]["concurrency"] for each in listed if each["name"].startswith("def")] == [None, 1]


def test_options_of_queues_are_shown_lifted_and_taken_back_one_by_one(shop: Shop) -> None:
    settings = '[queue.default]\nbypass_priority = "critical"\nretry_budget = 0.2\n'
    (shop.path / "holdfast.toml").write_text(settings)
    app, store, quiet = ["-A", "shop:hf"], ["--url", shop.url], ["queues", "options", "default"]
    none = hold(*quiet, "--bypass", "none", "--concurrency", "none", "--retry-budget", "none", *store, cwd=shop.path)
    lifted = hold(*quiet, "--bypass", "none", "--retry-budget", "default", "--json", *store, cwd=shop.path)
    shown, alone = hold(*quiet, *app, cwd=shop.path), hold(*quiet, *store, cwd=shop.path)
    hold(*quiet, "--default", *store, cwd=shop.path)
    as_json = hold(*quiet, *app, "--json", cwd=shop.path)
    slip = hold("queues", "options", "defualt", *store, cwd=shop.path)
    assert none.out == (
        "queue default: as many at once as a process has slots, no retry budget, nobody gets in while it is full\n"
    )
    assert lifted.json["options"] == {"concurrency": "none", "retry_budget": None, "bypass_priority": "none"}
    where = f"file {shop.path / 'holdfast.toml'}"
    assert shown.out == (f"concurrency\tnone\toperator\nretry_budget\t0.2\t{where}\nbypass_priority\tnone\toperator\n")
    assert alone.out == "concurrency\tnone\toperator\nretry_budget\t-\t-\nbypass_priority\tnone\toperator\n"
    assert as_json.json == {
        "name": "default",
        "concurrency": {"value": "none", "by": "built in"},
        "retry_budget": {"value": 0.2, "by": where},
        "bypass_priority": {"value": 9, "by": where},
    }
    assert (slip.code, "there is no queue 'defualt'" in slip.err, "did you mean 'default'" in slip.err) == (
        4,
        True,
        True,
    )


def test_a_weight_that_is_given_twice_is_refused(shop: Shop) -> None:
    twice = hold("queues", "weights", "default", "bulk=0", "bulk=3", "--url", shop.url, cwd=shop.path)
    assert (twice.code, twice.err.splitlines()[0]) == (2, "holdfast: the weight of 'bulk' was given twice")


def test_tenants_are_weighed(shop: Shop) -> None:
    steps = [["weight", "acme", "2.5"], ["weight", "tiny", "0.5", "--json"], ["list"], ["weight", "acme", "--default"]]
    weighed, tiny, listed, back = [hold("tenants", *words, "--url", shop.url, cwd=shop.path) for words in steps]
    assert weighed.out == "tenant acme has weight 2.5\n"
    assert tiny.json == {"tenant": "tiny", "weight": 0.5}
    assert listed.out.splitlines() == ["acme\t2.5\topen", "tiny\t0.5\topen"]
    assert back.out == "tenant acme has weight 1\n"
    assert hold("tenants", "list", "--url", shop.url, "--json", cwd=shop.path).json_lines == [
        tiny.json | {"paused": False}
    ]


def test_workers_are_listed_and_work_on_what_they_are_given(shop: Shop) -> None:
    with working(shop.path, "-q", "bank", "-q", "mail", "--concurrency", "7") as process:
        [worker] = hold("workers", "--url", shop.url, "--json", cwd=shop.path).json_lines
        assert (worker["queues"], worker["concurrency"]) == (["bank", "mail"], 7)
        assert parent_of(worker["pid"]) == process.pid, "a worker is a process under the supervisor"
    assert hold("workers", "--url", shop.url, cwd=shop.path).out == ""


def test_a_store_is_made_once_and_checked_without_being_made(tmp_path: Path) -> None:
    where = ("--url", "sqlite:///new.db")
    first = hold("migrate", "--check", *where, cwd=tmp_path)
    assert (first.code, first.out) == (
        1,
        f"new.db has schema version 0; to be applied: {', '.join(MIGRATIONS)}\n",
    )
    assert not (tmp_path / "new.db").exists()
    made = hold("migrate", *where, "--json", cwd=tmp_path).json
    newest = len(MIGRATIONS)
    assert made == {"place": "new.db", "schema": newest, "newest": newest, "applied": MIGRATIONS}
    assert hold("migrate", *where, cwd=tmp_path).out == f"new.db is up to date: schema version {newest}\n"
    with closing(sqlite3.connect(tmp_path / "new.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (newest,)


def test_queues_explain_says_where_a_job_would_go_and_why(shop: Shop) -> None:
    (shop.path / "holdfast.toml").write_text('[routes]\n"shop.*" = { queue = "money", priority = "high" }\n')
    origin = f"pattern 'shop.*' (file {shop.path / 'holdfast.toml'})"
    lines = hold("queues", "explain", "shop:hf", "shop.charge", "Ada", "700", cwd=shop.path)
    assert lines.out == f"queue\tmoney\t{origin}\npriority\t7\t{origin}\ntenant\t-\tbuilt in\n"
    as_json = hold("queues", "explain", "shop:hf", "shop.charge", "Ada", "700", "-p", "bulk", "--json", cwd=shop.path)
    assert as_json.json == {
        "task": "shop.charge",
        "queue": {"value": "money", "by": origin},
        "priority": {"value": 0, "by": "the call"},
        "tenant": {"value": "", "by": "built in"},
    }
    wrong = hold("queues", "explain", "shop:hf", "shop.charge", "Ada", "many", cwd=shop.path)
    assert wrong.code == 2
    assert "argument 'cents'" in wrong.err
    assert hold("queues", "explain", "shop:hf", cwd=shop.path).err.startswith("holdfast: which task of shop:hf?")
