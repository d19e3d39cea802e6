"""Flow control from the shell: limits, breakers, pauses, draining, moving, and who changed what."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest
from tests.cli.conftest import Shop
from tests.cli.processes import hold, working

WHO = f"{getpass.getuser()}@{socket.gethostname()}:"

APP = """
from holdfast import Breaker, Holdfast, Limit

hf = Holdfast("sqlite:///limited.db")


@hf.task(name="fetch", concurrency=Limit(7, name="api"))
async def fetch() -> None: ...


@hf.task(name="charge", concurrency=Limit(2, key=lambda who: who), rate="100/m", breaker=Breaker("bank"), queue="money")
async def charge(who: str) -> None: ...
"""


RACING = """
from limited import hf
from holdfast.client.breakers import Breakers
from holdfast.client.limits import Limits
from holdfast.client.routes import Routes


def cleared_at_once(kind):
    said = kind.set

    async def set(self, name, **options):
        answer = await said(self, name, **options)
        await self.clear(name)
        return answer

    kind.set = set


for kind in (Routes, Breakers, Limits):
    cleared_at_once(kind)
"""


@pytest.fixture
def limited(tmp_path: Path) -> Path:
    (tmp_path / "limited.py").write_text(APP)
    assert hold("migrate", "-A", "limited:hf", cwd=tmp_path).code == 0
    return tmp_path


def test_limits_are_listed_set_and_cleared(limited: Path) -> None:
    app, store = ["-A", "limited:hf"], ["--url", f"sqlite:///{limited / 'limited.db'}"]
    declared = hold("limits", "list", *app, cwd=limited)
    changed = hold("limits", "set", "task:charge", "--size", "5", "--rate", "10/s", *app, cwd=limited)
    unknown = hold("limits", "set", "stirpe", "--size", "1", "--json", *app, cwd=limited)
    listed = hold("limits", "list", "--json", *store, cwd=limited)
    cleared = hold("limits", "clear", "task:charge", *app, cwd=limited)
    again = hold("limits", "clear", "task:charge", *app, cwd=limited)
    slower = hold("limits", "set", "task:charge", "--rate", "5/s", "--burst", "3", "--json", *app, cwd=limited)
    slowest = hold("limits", "set", "task:charge", "--rate", "4/s", *store, cwd=limited)
    guessed = hold("limits", "set", "maps", "--rate", "9/s", *store, cwd=limited)
    keyed = hold("limits", "set", "task:charge/ada", "--size", "1", *app, cwd=limited)
    none = hold("limits", "set", "x", *app, cwd=limited)
    zero = hold("limits", "set", "x", "--size", "0", *app, cwd=limited)
    kind = hold("limits", "set", "api", "--rate", "1/s", *app, cwd=limited)
    unaware = hold("limits", "set", "api", "--rate", "1/s", *store, cwd=limited)
    in_vain = hold("limits", "list", *app, cwd=limited)
    assert declared.out == (
        "api\tconcurrency\t7\t0\t0\tcode\t-\n"
        "task:charge/…\tconcurrency\t2\t0\t0\tcode\t-\ntask:charge\trate\t100/m (burst 100)\t-\t0\tcode\t-\n"
    )
    assert changed.out == "limit task:charge: 5 and 10/s (burst 100)\n", "as the code says"
    assert changed.err == ""
    assert slower.json == {"name": "task:charge", "size": None, "rate": "5/s", "burst": 3}
    assert slowest.out == "limit task:charge: 4/s (burst 3)\n", "as it was set before"
    assert "burst" not in slowest.err
    assert guessed.out == "limit maps: 9/s (burst 9)\n"
    assert guessed.err.splitlines()[-1] == (
        "note: what code says of its burst is not known here: it is 9 now; `--burst` gives another"
    )
    assert (keyed.code, keyed.err.splitlines()[0]) == (
        2,
        "holdfast: 'task:charge/ada' is one key of limit 'task:charge': a size or a rate is for all of its keys",
    )
    assert unknown.json == {"name": "stirpe", "size": 1, "rate": None, "burst": None}
    assert unknown.err == "note: no limit called stirpe is in use, or declared by the app\n"
    assert [(each["key"], each["size"], each["rate"], each["said_by"]) for each in listed.json_lines] == [
        ("stirpe", 1, None, "operator"),
        ("task:charge", 5, None, "operator"),
        ("task:charge", None, "10/s", "operator"),
    ]
    assert cleared.out == "limit task:charge: as the code says\n"
    assert (again.code, again.err.splitlines()[0]) == (4, "holdfast: nothing is set for limit 'task:charge'")
    assert (none.code, none.err.splitlines()[0]) == (2, "holdfast: neither a size nor a rate was given")
    assert zero.code == 2
    assert (kind.code, kind.err.splitlines()) == (
        2,
        ["holdfast: 'api' is a concurrency limit in the code of the app", "  try: `--size 5` alone"],
    )
    assert unaware.err.splitlines() == [
        "note: no rate called api is in use, or declared by the app",
        "note: what code says of its burst is not known here: it is 1 now; `--burst` gives another",
    ]
    assert in_vain.out.splitlines()[1] == "api\trate\t-\t-\t0\toperator, to no effect\t-"
    assert "size=0 must be a whole number from 1 to 1,000,000" in zero.err


def test_routes_are_listed_set_and_cleared(limited: Path) -> None:
    app, store = ["-A", "limited:hf"], ["--url", f"sqlite:///{limited / 'limited.db'}"]
    settings = limited / "holdfast.toml"
    settings.write_text('[routes]\n"*.report" = "reports"\n"fetch" = { priority = "high" }\n')
    where = f"file {settings}"
    changed = hold("routes", "set", "f*", "--queue", "money", "--priority", "bulk", *app, cwd=limited)
    kept = hold("routes", "set", "f*", "-p", "7", "--json", *app, cwd=limited)
    slip = hold("routes", "set", "fecth", "-q", "slwo", *app, cwd=limited)
    unaware = hold("routes", "set", "fetch", "-q", "slow", *store, cwd=limited)
    listed = hold("routes", "list", *app, cwd=limited)
    alone = hold("routes", "list", *store, cwd=limited)
    fields = hold("routes", "list", "--json", *app, cwd=limited)
    explained = hold("queues", "explain", "limited:hf", "fetch", cwd=limited)
    enqueued = hold("enqueue", "limited:hf", "fetch", "--json", cwd=limited)
    shown = hold("jobs", "show", enqueued.json["id"], "--json", *app, cwd=limited)
    cleared = hold("routes", "clear", "f*", *app, cwd=limited)
    again = hold("routes", "clear", "f*", *app, cwd=limited)
    none = hold("routes", "set", "f*", *app, cwd=limited)
    wrong = hold("routes", "set", "f?", "-q", "x", *app, cwd=limited)
    audit = hold("audit", "--json", *app, cwd=limited)
    assert (changed.out, changed.err) == ("route f*: queue money, priority 0\n", "")
    assert kept.json == {"pattern": "f*", "queue": "money", "priority": 7}
    assert slip.err.splitlines() == [
        "note: no task of this app is called fecth",
        "note: queue slwo has had no job yet, and no worker serves it by its name",
    ]
    assert unaware.err == "note: queue slow has had no job yet, and no worker serves it by its name\n"
    assert listed.out.splitlines() == [
        "fecth\tslwo\t-\toperator\tnone of this app",
        "fetch\tslow\t-\toperator\t1",
        "f*\tmoney\t7\toperator\t1",
        f"fetch\t-\t7\t{where}\t1",
        f"*.report\treports\t-\t{where}\tnone of this app",
    ]
    assert alone.out.splitlines()[1] == "fetch\tslow\t-\toperator\t-"
    assert fields.json_lines[0] == {
        "pattern": "fecth", "queue": "slwo", "priority": None, "said_by": "operator", "matches": 0,
    }  # fmt: skip
    assert explained.out.splitlines()[:2] == [
        "queue\tslow\tpattern 'fetch' (operator)",
        "priority\t7\tpattern 'f*' (operator)",
    ]
    assert explained.err == ""
    assert (shown.json["queue"], shown.json["priority"]) == ("slow", 7)
    assert cleared.out == "route f*: as settings and code say\n"
    assert (again.code, again.err.splitlines()[0]) == (4, "holdfast: nothing is set for pattern 'f*'")
    assert (none.code, none.err.splitlines()[0]) == (2, "holdfast: neither a queue nor a priority was given")
    assert (wrong.code, wrong.err.partition(";")[0]) == (2, "holdfast: route 'f?': '?' is in no task's name")
    assert [(each["what"], each["name"]) for each in audit.json_lines][-1] == ("route", "f*")
    assert audit.json_lines[-1]["by"].startswith(WHO)


def test_a_route_to_a_queue_that_no_running_worker_serves_is_noted(shop: Shop) -> None:
    to_money = ["routes", "set", "shop.*", "--queue", "money", "--url", shop.url]
    hold("queues", "pause", "money", "--url", shop.url, cwd=shop.path)
    nobody_works = hold(*to_money, cwd=shop.path)
    with working(shop.path, "--queue", "other"):
        unserved = hold(*to_money, cwd=shop.path)
    with working(shop.path):
        served = hold(*to_money, cwd=shop.path)
    assert [each.err for each in (nobody_works, unserved, served)] == [
        "",
        "note: no running worker serves queue money\n",
        "",
    ]


@pytest.mark.parametrize("what", ["routes", "breakers", "limits"])
def test_what_is_cleared_at_the_same_moment_was_set_all_the_same(limited: Path, what: str) -> None:
    """Between its word to the store and its answer to a person, somebody else clears it."""
    said = {
        "routes": ["set", "f*", "--queue", "money"],
        "breakers": ["set", "bank", "--failures", "1"],
        "limits": ["set", "api", "--size", "3"],
    }[what]
    (limited / "racing.py").write_text(RACING)
    ended = hold(what, *said, "-A", "racing:hf", cwd=limited)
    assert (ended.code, ended.out) == (
        0,
        {
            "routes": "route f*: queue money\n",
            "breakers": "breaker bank opens at 1 failure within 60s for 30s\n",
            "limits": "limit api: 3\n",
        }[what],
    ), ended.err


def test_where_a_job_would_go_is_told_without_a_store_too(limited: Path) -> None:
    """And that what operators have set is not in it."""
    (limited / "limited.db").unlink()
    told = hold("queues", "explain", "limited:hf", "charge", "ada", cwd=limited)
    assert told.out.splitlines()[0] == "queue\tmoney\tthe task"
    assert told.err.startswith("note: what operators have set is not in this: there is no store at ")
    assert not (limited / "limited.db").exists()


def test_breakers_are_listed_opened_and_closed(limited: Path) -> None:
    app = ["-A", "limited:hf"]
    closed = hold("breakers", "list", *app, cwd=limited)
    opened = hold("breakers", "open", "bank", *app, cwd=limited)
    listed = hold("breakers", "list", "--json", *app, cwd=limited)
    again = hold("breakers", "close", "bnak", "--json", *app, cwd=limited)
    assert closed.out.startswith("bank\tclosed\t0\t0\t-\t")
    assert (opened.out, opened.err) == ("breaker bank is held open\n", "")
    [bank] = listed.json_lines
    assert (bank["name"], bank["phase"], bank["held"], bank["waiting"]) == ("bank", "open", True, 0)
    assert again.json == {"name": "bnak", "phase": "closed", "held": False}
    assert again.err == "note: no breaker called bnak has failed yet, or is declared by the app\n"


def test_tasks_and_tenants_are_paused_and_resumed(limited: Path) -> None:
    app = ["-A", "limited:hf"]
    paused = hold("tasks", "pause", "charge", *app, cwd=limited)
    listed = hold("tasks", "list", *app, cwd=limited)
    unknown = hold("tasks", "pause", "chrage", *app, cwd=limited)
    resumed = hold("tasks", "resume", "charge", "--json", *app, cwd=limited)
    tenant = hold("tenants", "pause", "acme", *app, cwd=limited)
    tenants = hold("tenants", "list", *app, cwd=limited)
    tenant_again = hold("tenants", "resume", "acme", *app, cwd=limited)
    assert (paused.out, paused.err) == ("task charge is paused\n", "")
    assert listed.out == "charge\tpaused\tmoney\nfetch\topen\tdefault\n"
    assert unknown.err == "note: task chrage has had no job yet\n"
    assert resumed.json == {"name": "charge", "paused": False}
    assert (tenant.out, tenant.err) == ("tenant acme is paused\n", "note: tenant acme has had no job yet\n")
    assert (tenants.out, tenant_again.out) == ("acme\t1\tpaused\n", "tenant acme is open\n")


def test_a_queue_is_drained_with_a_word_of_agreement_and_all_of_it_is_on_record(shop: Shop) -> None:
    store = ["--url", shop.url]
    asked = hold("queues", "drain", "default", *store, cwd=shop.path)
    drained = hold("queues", "drain", "default", "--yes", *store, cwd=shop.path)
    listed = hold("queues", "list", "--json", *store, cwd=shop.path)
    refused = hold("enqueue", "-A", "shop:hf", "shop.add", "1", cwd=shop.path)
    opened = hold("queues", "undrain", "default", *store, cwd=shop.path)
    record = hold("audit", *store, cwd=shop.path)
    newest = hold("audit", "-n", "1", "--json", *store, cwd=shop.path)
    assert asked.code == 2
    assert asked.err.startswith("holdfast: queue 'default' to accept nothing more, and nobody to ask\n")
    assert drained.out == "queue default accepts nothing more\n"
    assert {each["name"]: each["draining"] for each in listed.json_lines}["default"]
    assert refused.code == 5
    assert refused.err.startswith("holdfast: queue 'default' is being drained: it accepts nothing until")
    assert opened.out == "queue default accepts jobs again\n"
    lines = [line.split("\t") for line in record.out.splitlines()[:2]]
    assert [line[3:] for line in lines] == [
        ["queue", "default", '{"draining": true}', '{"draining": false}'],
        ["queue", "default", '{"draining": false}', '{"draining": true}'],
    ]
    assert all(line[2].startswith(WHO) for line in lines)
    assert newest.json_lines[0]["after"]["draining"] is False


def test_jobs_are_moved_by_id_and_by_filter(shop: Shop) -> None:
    store = ["--url", shop.url]
    one = hold("jobs", "move", shop.ready[0], "--to-priority", "high", *store, cwd=shop.path)
    asked = hold("jobs", "move", "--queue", "default", "--to-queue", "bulk", *store, cwd=shop.path)
    where = ["-q", "default", "-s", "ready", "--to-queue", "bulk"]
    rest = hold("jobs", "move", *where, "-y", "--json", *store, cwd=shop.path)
    both = hold("jobs", "move", shop.ready[0], "-q", "x", "--to-queue", "y", *store, cwd=shop.path)
    nowhere = hold("jobs", "move", shop.ready[0], *store, cwd=shop.path)
    shown = hold("jobs", "show", shop.ready[0], "--json", *store, cwd=shop.path)
    assert one.out == "1\n"
    assert asked.err.startswith("holdfast: 4 waiting jobs to move to queue bulk, and nobody to ask\n")
    assert rest.json == {"moved": len(shop.ready), "queue": "bulk", "priority": None}
    assert (both.code, nowhere.code) == (2, 2)
    assert "say which jobs: either ids or filters" in both.err
    assert "it was not said where to" in nowhere.err
    assert (shown.json["queue"], shown.json["priority"]) == ("bulk", 7)


def test_a_waiting_job_is_explained_for_people_and_for_programs(shop: Shop) -> None:
    store = ["--url", shop.url]
    text = hold("jobs", "explain", shop.ready[0], *store, cwd=shop.path)
    fields = hold("jobs", "explain", shop.ready[0], "--json", *store, cwd=shop.path).json
    assert text.out.startswith(f"job {shop.ready[0]} is ready, but no worker is running; ")
    assert (fields["id"], fields["state"], fields["starts_at"]) == (shop.ready[0], "ready", None)
    assert [each["kind"] for each in fields["held_by"]] == ["no_worker"]
    assert [each["kind"] for each in fields["notes"]] == ["lane"]
    assert fields["explanation"] == text.out.rstrip("\n")


def test_breakers_are_told_how_to_count(limited: Path) -> None:
    app, store = ["-A", "limited:hf"], ["--url", f"sqlite:///{limited / 'limited.db'}"]
    declared = hold("breakers", "list", *app, cwd=limited)
    changed = hold("breakers", "set", "bank", "--failures", "20", "--open-for", "2.5", *app, cwd=limited)
    unknown = hold("breakers", "set", "bnak", "--window", "9", "--json", *store, cwd=limited)
    listed = hold("breakers", "list", "--json", *app, cwd=limited)
    cleared = hold("breakers", "clear", "bank", *app, cwd=limited)
    again = hold("breakers", "clear", "bank", *app, cwd=limited)
    none = hold("breakers", "set", "bank", *app, cwd=limited)
    zero = hold("breakers", "set", "bank", "--failures", "0", *app, cwd=limited)
    audit = hold("audit", "--json", *store, cwd=limited)
    assert declared.out == "bank\tclosed\t0\t0\t-\tat 5 failures within 60s for 30s\tcode\n"
    assert (changed.out, changed.err) == ("breaker bank opens at 20 failures within 60s for 2.5s\n", "")
    assert unknown.json == {
        "name": "bnak",
        "failures": None,
        "window_s": 9.0,
        "open_for_s": None,
        "said_by": "operator",
    }
    assert unknown.err == "note: no breaker called bnak has failed yet, or is declared by the app\n"
    bank, bnak = listed.json_lines
    assert (bank["failures"], bank["window_s"], bank["open_for_s"], bank["said_by"]) == (20, 60.0, 2.5, "operator")
    assert (bnak["failures"], bnak["window_s"]) == (None, 9.0)
    assert cleared.out == "breaker bank counts as the code says\n"
    assert (again.code, again.err.splitlines()[0]) == (4, "holdfast: nothing is set for breaker 'bank'")
    assert (none.code, none.err.splitlines()[0]) == (2, "holdfast: nothing was given")
    assert (zero.code, "failures=0 must be a whole number from 1 to 1,000" in zero.err) == (2, True)
    assert [(each["name"], each["after"]) for each in audit.json_lines] == [
        ("bank", None),
        ("bnak", {"window_s": 9.0}),
        ("bank", {"failures": 20, "open_for_s": 2.5}),
    ]
