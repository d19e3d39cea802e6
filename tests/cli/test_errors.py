"""Whatever goes wrong is a sentence, something to try, and an exit code; never a traceback, unless asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Shop, copied
from tests.cli.processes import hold

NOBODY = "00000000-0000-7000-8000-000000000000"
STORE = ("--url", "sqlite:///jobs.db")

#: (words, exit code, a part of the sentence, a part of what to try)
TABLE: tuple[tuple[tuple[str, ...], int, str, str], ...] = (
    (("jbos",), 2, "no such command 'jbos'. Did you mean 'jobs'?", "`holdfast --help`"),
    (("jobs", "list", "--bogus"), 2, "no such option: --bogus", "`holdfast jobs list --help`"),
    (("jobs", "list", "--state", "asleep"), 2, "'asleep'", "`holdfast jobs list --help`"),
    (("jobs", "show"), 2, "missing argument", "`holdfast jobs show --help`"),
    (("jobs", "list"), 3, "there is no store at ", "`holdfast migrate` makes a new one"),
    (("enqueue", "--url", "sqlite:///no.db", "a.task"), 3, "no.db (argument url)", "--url"),
    (("jobs", "list", "--url", ":memory:"), 2, "':memory:' is private to the process", "name a file"),
    (("jobs", "list", "--url", "sqlite:///no/such/dir.db"), 3, "there is no store at ", "--url"),
    (("migrate", "--url", "sqlite:///no/such/dir.db"), 3, "does not exist; create it first", "`holdfast doctor`"),
    (("jobs", "list", "--url", "sqlite:///shop.py"), 3, "is not a SQLite database", "`holdfast doctor`"),
    (("jobs", "list", "--url", "redis://u:hidden@x/1"), 2, "'redis://u:***@x/1' has the scheme", "`holdfast doctor`"),
    (("jobs", "show", "17", *STORE), 2, "'17' is not a job id", ""),
    (("jobs", "show", NOBODY, *STORE), 4, f"there is no job {NOBODY}", "`holdfast jobs list`"),
    (("jobs", "wait", NOBODY, *STORE), 4, f"there is no job {NOBODY}", "`holdfast jobs list`"),
    (("jobs", "retry", "DONE", *STORE), 4, "only a dead job can be run again", "`holdfast jobs explain ID`"),
    (("dead", "show", "DONE", *STORE), 4, "is not dead but succeeded", "`holdfast jobs explain ID`"),
    (
        ("jobs", "wait", "LATER", "--timeout", "0.01", "--json", *STORE),
        5,
        "has not ended within 0.01 s",
        "`holdfast jobs wait ID`",
    ),
    (("dead", "replay", *STORE), 2, "say which dead jobs to replay", "`holdfast dead replay --help`"),
    (("dead", "purge", "--all", *STORE), 2, "3 dead jobs to purge, and nobody to ask", "`--yes`"),
    (("queues", "purge", "default", *STORE), 2, "4 jobs to cancel in queue 'default', and nobody to ask", "`--yes`"),
    (("queues", "purge", "no", *STORE), 4, "there is no queue 'no'", "`holdfast queues list`"),
    (("queues", "purge", "bnak", *STORE), 4, "did you mean 'bank'?", "`holdfast queues list`"),
    (("queues", "pause", "a b", *STORE), 2, "queue name 'a b' has ' ' at position 2", ""),
    (("queues", "weights", "default", *STORE), 2, "no weight was given", "`bulk=0`"),
    (
        ("queues", "weights", "default", "bulk=0", "--default", *STORE),
        2,
        "give either weights or --default",
        "`holdfast",
    ),
    (("queues", "weights", "default", "bulk:0", *STORE), 2, "'bulk:0' is not a priority's weight", "`bulk=0`"),
    (("queues", "watermarks", "a", "--high", "1", "--low", "2", *STORE), 2, "low", ""),
    (("queues", "watermarks", "a", "--high", "1", *STORE), 2, "--high and --low go together", ""),
    (("queues", "watermarks", "a", *STORE), 2, "no watermarks were given", "`--high 50000 --low 10000`"),
    (("queues", "watermarks", "a", "--high-age", "1", "--low-age", "2", *STORE), 2, "need 0 <= low < high", ""),
    (("queues", "watermarks", "a", "--high-age", "1", *STORE), 2, "--high-age and --low-age go together", ""),
    (("tenants", "weight", "acme", "0", *STORE), 2, "must lie between 0.01 and 100", ""),
    (("tenants", "weight", "acme", *STORE), 2, "give either a weight or --default", "`holdfast tenants weight acme 2`"),
    (("enqueue", "shop", "shop.add", "1"), 2, "'shop' does not name an app", "`shop:hf` for hf in shop"),
    (("worker",), 2, "which app?", "HOLDFAST_APP"),
    (("worker", "shop"), 2, "'shop' does not name an app", "`shop:hf` for hf in shop"),
    (("worker", "./shop.py"), 2, "'./shop.py' does not name an app", "`shop:hf` for hf in ./shop.py"),
    (("worker", "shop.py:hf"), 2, "there is no module 'shop.py'", "`shop:hf` for hf in shop.py"),
    (("worker", "shops"), 2, "'shops' does not name an app", "`shop.jobs:hf` for hf in shop/jobs.py"),
    (("worker", "nowhere:hf"), 2, "there is no module 'nowhere'", "PYTHONPATH"),
    (("worker", "needy:hf"), 2, "'needy' cannot be imported: ModuleNotFoundError: No module named 'absent'", "--debug"),
    (("worker", "broken:hf"), 2, "'broken' cannot be imported: ZeroDivisionError: division by zero (", "--debug"),
    (("worker", "garbled:hf"), 2, "'garbled' cannot be imported: SyntaxError: ", "--debug"),
    (("worker", "leaver:hf"), 2, "'leaver' cannot be imported: SystemExit: 3", "--debug"),
    (("worker", "shop:app"), 2, "module 'shop' has no 'app'", "`shop:hf`"),
    (("worker", "shop:number"), 2, "shop:number is not a Holdfast app but of type int", "`shop:hf`"),
    (("worker", "--reload"), 2, "which app?", "HOLDFAST_APP"),
    (("worker", "shop", "--reload"), 2, "'shop' does not name an app", "module:attribute"),
    (("worker", "shop:hf", "--reload-dir", "."), 2, "--reload-dir is for --reload", "add `--reload`"),
    (("worker", "shop:hf", "--reload", "--reload-dir", "no"), 2, "there is no directory no", "`--reload-dir`"),
    (("worker", "shop:hf", "-A", "shop:hf"), 2, "two apps were named", "not both"),
    (("jobs", "list", "-A", "shop:hf", *STORE), 2, "-A and --url were both given", "one of them"),
    (("enqueue", "shop:hf"), 2, "which task of shop:hf?", "its tasks are shop.add, shop.charge, shop.rows"),
    (("enqueue", "shop:hf", "ad"), 2, "app shop:hf has no task 'ad'", "`shop.add`"),
    (("enqueue", "shop:hf", "zzz"), 2, "app shop:hf has no task 'zzz'", "its tasks are shop.add, shop.charge"),
    (("enqueue", "shop:hf", "shop.add", "two"), 2, "argument 'a': Input should be a valid integer", "read as JSON"),
    (("enqueue", "shop:hf", "shop.add"), 2, "argument 'a': Missing", "`shop.add(a: int, b: int = 1)`"),
    (("enqueue", "shop:hf", "shop.add", "{a:1}"), 2, "'{a:1}' begins like JSON and is not", "quote it"),
    (("enqueue", "shop:hf", "shop.add", "a=1", "a=2"), 2, "the argument 'a' was given twice", "`a=…`"),
    (("enqueue", "shop:hf", "shop.add", "1", "--timeout", "1"), 2, "--timeout is for --wait", "`--wait`"),
    (("enqueue", "shop:hf", "shop.add", "1", "-p", "hihg"), 2, "did you mean 'high'?", ""),
    (("dead", "edit", "DEAD", "Ada", "cents=many", "-A", "shop:hf"), 2, "argument 'cents'", "read as JSON"),
)

MODULES = {
    "needy": "import absent",
    "broken": "1 / 0",
    "garbled": "def",
    "leaver": "import sys; sys.exit(3)",
}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory, filled_shop: Shop) -> Iterator[Shop]:
    """One shop for all rows: whatever is refused changes nothing."""
    shop = copied(filled_shop, tmp_path_factory.mktemp("shop"))
    for name, text in MODULES.items():
        (shop.path / f"{name}.py").write_text(text, "utf-8")
    before = {path.name for path in shop.path.iterdir()}
    jobs = hold("jobs", "list", *STORE, "--json", cwd=shop.path).out
    yield shop
    assert hold("jobs", "list", *STORE, "--json", cwd=shop.path).out == jobs
    assert {path.name for path in shop.path.iterdir()} - before <= {"__pycache__", "jobs.db-wal", "jobs.db-shm"}


@pytest.mark.parametrize(("words", "code", "sentence", "remedy"), TABLE, ids=[" ".join(words) for words, *_ in TABLE])
def test_an_error_is_a_sentence_and_what_to_try(
    words: tuple[str, ...], code: int, sentence: str, remedy: str, unchanged: Shop
) -> None:
    names = {"DONE": unchanged.done, "LATER": unchanged.later, "DEAD": unchanged.dead[0]}
    ended = hold(*(names.get(word, word) for word in words), cwd=unchanged.path)
    assert (ended.code, ended.out) == (code, ""), ended
    first, *rest = ended.err.splitlines()
    assert first.startswith("holdfast: ")
    assert sentence in first
    assert "Traceback" not in ended.err
    assert "hidden" not in ended.err
    if remedy:
        [hint] = rest
        assert hint.startswith("  try: ")
        assert remedy in hint


def test_the_traceback_is_shown_to_who_asks_for_it(shop: Shop) -> None:
    (shop.path / "broken.py").write_text("1 / 0", "utf-8")
    ended = hold("worker", "broken:hf", "--debug", cwd=shop.path)
    assert ended.code == 2
    assert "Traceback (most recent call last)" in ended.err
    assert ended.err.splitlines()[-2].startswith("holdfast: module 'broken' cannot be imported")


def test_a_full_queue_is_not_now(shop: Shop) -> None:
    hold("queues", "watermarks", "default", "--high", "2", "--low", "1", *STORE, cwd=shop.path)
    ended = hold("enqueue", "shop:hf", "shop.add", "1", cwd=shop.path, HOLDFAST_WAIT_S="0")
    assert ended.code == 5
    assert "queue 'default' is full: 3 jobs are ready" in ended.err


def test_wrong_settings_are_named_with_their_origin(tmp_path: Path) -> None:
    ended = hold("jobs", "list", cwd=tmp_path, HOLDFAST_LEASE_S="soon")
    assert ended.code == 2
    assert re.match(r"holdfast: setting lease_s \(variable HOLDFAST_LEASE_S\): 'soon' is not a number", ended.err)


def test_without_a_command_there_is_help(tmp_path: Path) -> None:
    for words in ((), ("dead",)):
        ended = hold(*words, cwd=tmp_path)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("Usage: holdfast ")
