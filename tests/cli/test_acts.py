"""What is done to jobs from a shell is on record, with who did it; what was only looked at is not."""

from __future__ import annotations

import getpass
import socket
from typing import Any

from tests.cli.conftest import Shop
from tests.cli.processes import hold

WHO = f"{getpass.getuser()}@{socket.gethostname()}:"


def _record(shop: Shop) -> list[tuple[str, str, Any]]:
    """The oldest first."""
    lines = hold("audit", "--json", "--url", shop.url, cwd=shop.path).json_lines
    assert all(each["by"].startswith(WHO) for each in lines), "as for the changes of settings"
    return [(each["what"], each["name"], each["after"]) for each in reversed(lines)]


def test_what_is_done_to_jobs_is_on_record_with_whoever_did_it(shop: Shop) -> None:
    store = ["--url", shop.url]
    ada, bob, eve = shop.dead
    hold("jobs", "cancel", shop.later, "-r", "no need", *store, cwd=shop.path)
    hold("jobs", "move", shop.ready[0], "--to-priority", "high", *store, cwd=shop.path)
    hold("jobs", "move", "-q", "default", "--to-queue", "slow", "--yes", *store, cwd=shop.path)
    hold("jobs", "retry", ada, *store, cwd=shop.path)
    hold("dead", "edit", bob, "Bob", "cents=700", "--replay", *store, cwd=shop.path)
    hold("dead", "purge", eve, "--yes", *store, cwd=shop.path)
    hold("queues", "purge", "slow", "--yes", *store, cwd=shop.path)
    assert _record(shop) == [
        ("cancel", shop.later, {"reason": "no need"}),
        ("move", "jobs", {"ids": [shop.ready[0]], "priority": "high", "count": 1}),
        ("move", "jobs", {"filter": {"queue": "default"}, "queue": "slow", "count": 3}),
        ("retry", ada, {}),
        ("edit", bob, {"replayed": True}),
        ("purge", "dead letters", {"ids": [eve], "count": 1}),
        ("purge", "queue slow", {"reason": "purged", "count": 3}),
    ]


def test_many_dead_jobs_are_on_record_by_their_filter_without_words_of_errors(shop: Shop) -> None:
    store = ["--url", shop.url]
    hold("dead", "replay", "--task", "shop.charge", "--text", "charged", "--yes", *store, cwd=shop.path)
    hold("dead", "purge", "--all", "--yes", *store, cwd=shop.path)
    [replayed, *rest] = _record(shop)
    assert replayed == ("replay", "dead letters", {"filter": {"task": "shop.charge", "text": "…"}, "count": 3})
    assert rest == [], "nothing was left that could be purged"


def test_what_was_not_done_is_not_on_record(shop: Shop) -> None:
    store = ["--url", shop.url]
    none = "01985f3e-6f0a-7a51-8d8e-2f4f8f1f0c11"
    hold("jobs", "cancel", none, *store, cwd=shop.path)
    hold("jobs", "retry", shop.ready[0], *store, cwd=shop.path)
    hold("dead", "purge", "--all", "--dry-run", *store, cwd=shop.path)
    hold("dead", "purge", "--all", *store, cwd=shop.path)  # nobody is there to say yes
    hold("jobs", "show", shop.done, *store, cwd=shop.path)
    for words, said in (
        (["dead", "edit", shop.dead[0], "Ada", "cents=many"], "argument 'cents'"),
        (["jobs", "move", shop.ready[0], "--to-queue", "no/such"], "no/such"),
        (["jobs", "move", shop.ready[0], "--to-priority", "utmost"], "utmost"),
    ):
        refused = hold(*words, "-A", "shop:hf", cwd=shop.path)
        assert (refused.code, said in refused.err) == (2, True), refused.err
    assert _record(shop) == []
