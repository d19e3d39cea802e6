"""What a user gets from every source of settings, and the exact sentence for every wrong one."""

from __future__ import annotations

import contextlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import Config
from holdfast.core.errors import ConfigError
from holdfast.core.queue_options import QueueOptions
from holdfast.core.routing import Route
from holdfast.core.urls import mask, sqlite_path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, so that only what the test writes is found."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Sources and their order


def test_defaults_hold_where_nothing_is_given(here: Path) -> None:
    config = Config.load(environ={})
    assert config == Config()
    assert {name: config.origin(name) for name in config.masked()} == dict.fromkeys(config.masked(), "default")


def test_arguments_go_before_environment_before_file(here: Path) -> None:
    (here / "holdfast.toml").write_text("concurrency = 1\nthreads = 1\nlease_s = 1\n")
    environ = {"HOLDFAST_CONCURRENCY": "2", "HOLDFAST_THREADS": "2"}
    config = Config.load(environ=environ, concurrency=3)
    assert (config.concurrency, config.threads, config.lease_s) == (3, 2, 1.0)
    assert config.origin("concurrency") == "argument concurrency"
    assert config.origin("threads") == "variable HOLDFAST_THREADS"
    assert config.origin("lease_s") == f"file {here / 'holdfast.toml'}"
    assert config.origin("grace_s") == "default"


def test_the_process_environment_is_read_unless_another_is_given(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_THREADS", "7")
    assert Config.load().threads == 7
    assert Config.load(environ={}).threads == 32


def test_holdfast_toml_goes_before_pyproject(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.holdfast]\nthreads = 5\nconcurrency = 5\n")
    assert Config.load(environ={}).threads == 5
    (here / "holdfast.toml").write_text("threads = 6\n")
    config = Config.load(environ={})
    assert (config.threads, config.concurrency) == (6, 100)


def test_a_pyproject_without_our_table_says_nothing(here: Path) -> None:
    (here / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    assert Config.load(environ={}) == Config()


def test_directories_above_are_not_searched(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "holdfast.toml").write_text("threads = 5\n")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert Config.load(environ={}) == Config()


def test_a_named_file_replaces_the_search(here: Path) -> None:
    (here / "holdfast.toml").write_text("threads = 5\nconcurrency = 5\n")
    (here / "other.toml").write_text("threads = 6\n")
    (here / "third.toml").write_text("threads = 7\n")
    environ = {"HOLDFAST_CONFIG": "other.toml"}
    assert Config.load(environ=environ).masked() == Config(threads=6).masked()
    assert Config.load(environ=environ, path="third.toml").threads == 7


def test_a_text_names_queues_with_commas_and_a_list_names_them_one_by_one(here: Path) -> None:
    assert Config.load(environ={"HOLDFAST_QUEUES": "mail, images,mail"}).queues == ("mail", "images")
    (here / "holdfast.toml").write_text('queues = ["mail", "images"]\n')
    assert Config.load(environ={}).queues == ("mail", "images")
    assert Config(queues=["mail"]).queues == ("mail",)  # type: ignore[arg-type]
    assert Config(queues=["mail", "mail"]).queues == ("mail",)  # type: ignore[arg-type]  # a list is taken, too
    for two in (["mail", "mail=3"], ["mail=1", "mail=3"]):
        with pytest.raises(ConfigError, match=r"setting queues \(argument queues\): queue 'mail' was given twice"):
            Config(queues=two)  # type: ignore[arg-type]  # a list is taken, too


@pytest.mark.parametrize(
    "environ",
    [
        {"HOLDFAST_TEST_POSTGRES_URL": "x"},
        {"HOLDFAST_CONCURRENCY": ""},
        {"HOLDFAST_CONFIG": " "},
        {"HOLDFAST_SERVICE_HOST": "10.0.0.1", "HOLDFAST_PORT": "tcp://10.0.0.1:80"},
        {"HOLDFAST_API_PORT_80_TCP_ADDR": "10.0.0.1", "HOLDFAST_API_SERVICE_PORT_HTTP": "80"},
        {"HOLDFASTER": "x", "PATH": "x"},
    ],
)
def test_variables_that_are_not_settings_are_left_alone(here: Path, environ: dict[str, str]) -> None:
    assert Config.load(environ=environ) == Config()


def test_none_means_not_given(here: Path) -> None:
    config = Config.load(environ={"HOLDFAST_THREADS": "7"}, threads=None)
    assert (config.threads, config.origin("threads")) == (7, "variable HOLDFAST_THREADS")


def test_a_bad_value_that_is_overridden_does_no_harm(here: Path) -> None:
    assert Config.load(environ={"HOLDFAST_THREADS": "many"}, threads=3).threads == 3


# Values


def test_numbers_get_their_fields_type() -> None:
    config = Config(lease_s=3)
    assert isinstance(config.lease_s, float)
    assert config.origin("lease_s") == "argument lease_s"


@pytest.mark.parametrize("setting", [s for s in Config.settings() if s.low is not None], ids=lambda s: s.name)
def test_both_bounds_are_accepted_and_what_lies_outside_is_not(setting: Any) -> None:
    others = {"low_watermark": 0, "high_watermark": 1_000_000_000}
    edge = 1 if setting.name == "low_watermark" else 0  # the high watermark has to stay above it
    for value in (setting.low, setting.high - edge):
        assert getattr(Config(**(others | {setting.name: value})), setting.name) == value
    for value in (setting.low - 1, setting.high + 1, float("nan"), float("inf"), None, True, "1"):
        with pytest.raises(ConfigError, match=f"^setting {setting.name} .*: .* is not a"):
            Config(**(others | {setting.name: value}))


def test_every_setting_is_documented_with_its_default() -> None:
    docs = {setting.name: setting.doc for setting in Config.settings()}
    assert all(" Defaults to " in doc and doc.endswith(".") for doc in docs.values())
    assert docs["concurrency"] == "Jobs that one worker process runs at once. Defaults to 100."
    assert docs["key_window_s"].endswith("Defaults to 86,400.")
    assert docs["url"].endswith("Defaults to `sqlite:///holdfast.db`.")
    assert docs["queues"].endswith("Defaults to none.")


def test_a_config_survives_the_way_into_another_process(here: Path) -> None:
    config = Config.load(environ={"HOLDFAST_THREADS": "7"}, queues="mail")
    copy = pickle.loads(pickle.dumps(config))
    assert copy == config
    assert hash(copy) == hash(config)
    assert copy.origin("threads") == "variable HOLDFAST_THREADS"


# Wrong input: the whole sentence that the user sees. {here} stands for the current directory.

BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"environ": {"HOLDFAST_CONCURRENCY": "0"}},
        "setting concurrency (variable HOLDFAST_CONCURRENCY): 0 is not a whole number from 1 to 10,000",
    ),
    (
        {"environ": {"HOLDFAST_CONCURRENCY": "many"}},
        ("setting concurrency (variable HOLDFAST_CONCURRENCY): 'many' is not a whole number from 1 to 10,000"),
    ),
    (
        {"environ": {"HOLDFAST_LEASE_S": "0.1"}},
        "setting lease_s (variable HOLDFAST_LEASE_S): 0.1 is not a number of seconds from 0.5 to 3,600",
    ),
    (
        {"environ": {"HOLDFAST_LEASE_S": "nan"}},
        "setting lease_s (variable HOLDFAST_LEASE_S): nan is not a number of seconds from 0.5 to 3,600",
    ),
    ({"threads": 1.5}, "setting threads (argument threads): 1.5 is not a whole number from 1 to 1,000"),
    ({"threads": "8"}, "setting threads (argument threads): '8' is not a whole number from 1 to 1,000"),
    (
        {"payload_limit": 10},
        ("setting payload_limit (argument payload_limit): 10 is not a whole number from 1,024 to 67,108,864"),
    ),
    (
        {"toml": "concurrency = true"},
        "setting concurrency (file {here}/holdfast.toml): True is not a whole number from 1 to 10,000",
    ),
    (
        {"toml": "queues = [1]"},
        (
            "setting queues (file {here}/holdfast.toml): [1] is not a list of queue names, "
            "or one text with commas "
            "between them"
        ),
    ),
    (
        {"environ": {"HOLDFAST_QUEUES": "mail,,images"}},
        (
            "setting queues (variable HOLDFAST_QUEUES): 'mail,,images' is not a list of "
            "queue names, or one text "
            "with commas between them"
        ),
    ),
    (
        {"queues": 0},
        ("setting queues (argument queues): 0 is not a list of queue names, or one text with commas between them"),
    ),
    ({"failpoints": 1}, "setting failpoints (argument failpoints): 1 is not a text"),
    (
        {"environ": {"HOLDFAST_LOW_WATERMARK": "500"}, "high_watermark": 500},
        (
            "setting low_watermark (variable HOLDFAST_LOW_WATERMARK): 500 is not below "
            "high_watermark, which is 500 "
            "(argument high_watermark)"
        ),
    ),
    (
        {"high_watermark": 100},
        ("setting low_watermark (default): 2000 is not below high_watermark, which is 100 (argument high_watermark)"),
    ),
    # unknown names
    (
        {"toml": "concurency = 3"},
        "there is no setting concurency (in file {here}/holdfast.toml): did you mean concurrency?",
    ),
    (
        {"pyproject": "[tool.holdfast]\nlease-s = 3"},
        "there is no setting lease-s (in file {here}/pyproject.toml): did you mean lease_s?",
    ),
    (
        {"environ": {"HOLDFAST_CONCURENCY": "3"}},
        ("there is no setting HOLDFAST_CONCURENCY (in the environment): did you mean HOLDFAST_CONCURRENCY?"),
    ),
    ({"graces": 3}, "there is no setting graces (in an argument): did you mean grace_s?"),
    (
        {"queue": "mail"},
        "setting queue (argument queue): 'mail' is not a table (in a variable: a JSON object)",
    ),
    (
        {"environ": {"HOLDFAST_QUEUE": "mail=5"}},
        "setting queue (variable HOLDFAST_QUEUE): 'mail=5' is not a table (in a variable: a JSON object)",
    ),
    (
        {"queue": {"mail": 5}},
        "setting queue (argument queue): queue 'mail': 5 is not a table of settings, as { concurrency = 5 }",
    ),
    (
        {"queue": {"no mail": {}}},
        (
            "setting queue (argument queue): queue name 'no mail' has ' ' at position 3; allowed are letters A-Z, "
            "digits, '_', '.' and '-'"
        ),
    ),
    (
        {"queue": {"mail": {"concurency": 5}}},
        "setting queue (argument queue): queue 'mail': there is no setting concurency: did you mean concurrency?",
    ),
    (
        {"queue": {"mail": {"prefetch": 5}}},
        (
            "setting queue (argument queue): queue 'mail': there is no prefetch to set: a worker claims no more jobs "
            "than it has free slots"
        ),
    ),
    (
        {"queue": {"mail": {"concurrency": 0}}},
        (
            "setting queue (argument queue): queue 'mail': concurrency = 0 is not a whole number from 1 to 10,000; to "
            "start nothing of a queue, pause it; for no bound say 'none'"
        ),
    ),
    (
        {"queue": {"mail": {"retry_budget": 1.5}}},
        (
            "setting queue (argument queue): queue 'mail': retry_budget = 1.5 is not a share above 0 and below 1, as "
            "0.2; for no budget say 'none'"
        ),
    ),
    (
        {"queue": {"mail": {"bypass_priority": "urgent"}}},
        (
            "setting queue (argument queue): queue 'mail': there is no priority 'urgent'; give one of critical (9), "
            "high (7), normal (5), low (2), bulk (0) or a number 0 to 9"
        ),
    ),
    (
        {"routes": {"pay?": "money"}},
        (
            "setting routes (argument routes): route 'pay?': '?' is in no task's name; besides what names are made of, "
            "only * has a meaning: any characters"
        ),
    ),
    (
        {"routes": {"": "money"}},
        "setting routes (argument routes): route '': needs a pattern for names of tasks, as in 'payments.*'",
    ),
    (
        {"routes": {"pay.*": {}}},
        (
            "setting routes (argument routes): route 'pay.*': {} is not a queue's name, nor a table with queue, "
            "priority or both"
        ),
    ),
    (
        {"routes": {"pay.*": {"queue": "money", "tenant": "x"}}},
        (
            "setting routes (argument routes): route 'pay.*': {'queue': 'money', 'tenant': 'x'} is not a queue's name, "
            "nor a table with queue, priority or both"
        ),
    ),
    (
        {"routes": {"pay.*": {"priority": 11}}},
        (
            "setting routes (argument routes): route 'pay.*': priority=11: needs a whole number from 0 to 9 (most "
            "urgent) or one of critical (9), high (7), normal (5), low (2), bulk (0)"
        ),
    ),
    (
        {"zzz": 3},
        (
            "there is no setting zzz (in an argument): there are url, schema, pooled, redis, queues, queue, "
            "routes, concurrency, processes, most_processes, spares, kill_after_s, max_jobs, max_age_s, max_memory_mb, "
            "threads, isolates, lease_s, grace_s, poll_s, wait_s, high_watermark, low_watermark, payload_limit, "
            "result_limit, key_window_s, keep_succeeded_s, keep_cancelled_s, unknown_after_s, metrics_listen, "
            "log_format, app, failpoints"
        ),
    ),
    (
        {"schema": "My Jobs"},
        (
            "setting schema (argument schema): 'My Jobs' is not a name for a schema: write up to 40 "
            "lower-case letters, digits and underscores, not beginning with a digit or with 'pg_'"
        ),
    ),
    (
        {"environ": {"HOLDFAST_POOLED": "maybe"}},
        "setting pooled (variable HOLDFAST_POOLED): 'maybe' is not yes or no (in a file: true or false)",
    ),
    # files
    (
        {"path": "gone.toml"},
        "settings file {here}/gone.toml (argument path) cannot be read: No such file or directory",
    ),
    (
        {"environ": {"HOLDFAST_CONFIG": "/"}},
        "settings file / (variable HOLDFAST_CONFIG) cannot be read: Is a directory",
    ),
    (
        {"toml": "concurrency ="},
        ("settings file {here}/holdfast.toml (found here) is not valid TOML: Invalid value (at end of document)"),
    ),
    (
        {"pyproject": "[tool]\nholdfast = 3"},
        "'holdfast' in file {here}/pyproject.toml is 3: settings go under the heading [tool.holdfast]",
    ),
    # the store's URL
    (
        {"environ": {"HOLDFAST_URL": "mysql://me:hunter2@db/shop"}},
        (
            "setting url (variable HOLDFAST_URL): 'mysql://me:***@db/shop' has the "
            "scheme 'mysql', and "
            "jobs are stored in PostgreSQL or SQLite: write 'postgresql://user@host/database' or 'sqlite:///file.db'"
        ),
    ),
    (
        {"url": "jobs.db"},
        ("setting url (argument url): 'jobs.db' is not a URL: for a file of that name write 'sqlite:///jobs.db'"),
    ),
    (
        {"url": "sqlite://host/jobs.db"},
        (
            "setting url (argument url): 'sqlite://host/jobs.db' needs three slashes, "
            "because SQLite has no hosts: "
            "write 'sqlite:///host/jobs.db', or four slashes before an absolute path"
        ),
    ),
    (
        {"url": "sqlite://"},
        (
            "setting url (argument url): 'sqlite://' needs three slashes, because SQLite has no hosts: "
            "write 'sqlite:///file.db', or four slashes before an absolute path"
        ),
    ),
    (
        {"url": "sqlite:///"},
        "setting url (argument url): 'sqlite:///' names no file: write 'sqlite:///holdfast.db'",
    ),
    (
        {"url": "sqlite:////var/lib/"},
        ("setting url (argument url): 'sqlite:////var/lib/' names no file: write 'sqlite:////var/lib/holdfast.db'"),
    ),
    (
        {"url": "sqlite:///a.db?password=hunter2"},
        (
            "setting url (argument url): 'sqlite:///a.db?password=***' has options, and "
            "SQLite takes none here: end "
            "the URL after the file's name (in a name, write %3F for a question mark and %23 for a hash)"
        ),
    ),
    (
        {"url": "sqlite:///a%00.db"},
        ("setting url (argument url): 'sqlite:///a%00.db' has a NUL character in its file's name: leave out '%00'"),
    ),
    ({"url": Path("x")}, "setting url (argument url): PosixPath('x') is not a text"),
]


@pytest.mark.parametrize(("given", "sentence"), BAD, ids=[sentence[:60] for _, sentence in BAD])
def test_wrong_input_gets_a_sentence(here: Path, given: dict[str, Any], sentence: str) -> None:
    given = {"environ": {}} | given
    for key, file in (("toml", "holdfast.toml"), ("pyproject", "pyproject.toml")):
        if key in given:
            (here / file).write_text(given.pop(key))
    with pytest.raises(ConfigError) as caught:
        Config.load(**given)
    assert str(caught.value) == sentence.replace("{here}", str(here))


def test_a_file_that_is_not_utf8_gets_a_sentence(here: Path) -> None:
    (here / "holdfast.toml").write_bytes(b"url = '\xff'")
    with pytest.raises(ConfigError, match=r"holdfast\.toml \(found here\) is not valid TOML: .*utf-8"):
        Config.load(environ={})


def test_asking_for_the_origin_of_an_unknown_setting_gets_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"there is no setting thread .*did you mean threads"):
        Config().origin("thread")


# URLs


@pytest.mark.parametrize(
    ("url", "path"),
    [
        (":memory:", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite:///relative.db", "relative.db"),
        ("sqlite:///a/b.db", "a/b.db"),
        ("sqlite:////absolute/b.db", "/absolute/b.db"),
        ("SQLite:///a.db", "a.db"),
        ("sqlite:///a%20b%3F%23.db", "a b?#.db"),
        ("sqlite:///caf%C3%A9.db", "café.db"),
        ("sqlite:///a:b@c.db", "a:b@c.db"),
    ],
)
def test_sqlite_urls_name_a_file(url: str, path: str) -> None:
    assert sqlite_path(url) == path
    assert Config(url=url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:hunter2@db/shop",
        "mysql://me:hun/ter2@x@db/shop",
        "redis://:hunter2@db",
        "me:hunter2@db/shop",
        "mysql://db/shop?user=me&password=hunter2&x=1",
        "host=db password='hunter2 hunter2' dbname=shop",
        "sqlite:///x?token=hunter2",
    ],
)
def test_passwords_are_masked(url: str) -> None:
    assert "hun" not in mask(url)
    assert "ter2" not in mask(url)
    assert "***" in mask(url)
    with pytest.raises(ConfigError) as caught:
        Config(url=url)
    assert "ter2" not in str(caught.value)


def test_a_config_is_shown_without_passwords() -> None:
    config = Config(url="sqlite:///secret=hunter2", redis="redis://:hunter2@host")
    assert config.masked()["url"] == "sqlite:///secret=***"
    assert "hunter2" not in repr(config)
    shown = "Config(url='sqlite:///secret=***', schema='holdfast', pooled=False, redis='redis://:***@host', queues=(), "
    assert repr(config).startswith(shown)


@given(st.text(), st.text(alphabet="abcdef", min_size=8), st.text())
def test_whatever_stands_around_a_password_it_is_masked(user: str, password: str, rest: str) -> None:
    url = f"postgresql://{''.join(c for c in user if c not in ':/@')}:{password}X@{rest}"
    assert f"{password}X" not in mask(url).partition("***")[0]
    assert "***" in mask(url)


@given(st.text())
def test_any_text_as_url_is_a_path_or_a_sentence(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert sqlite_path(f"sqlite:///{text}")


# Tables


def test_tables_come_from_a_file_a_variable_or_an_argument_whole(here: Path) -> None:
    (here / "pyproject.toml").write_text(
        '[tool.holdfast.queue.mail]\nconcurrency = 5\nbypass_priority = "critical"\n'
        '[tool.holdfast.routes]\n"pay.*" = "money"\n"mail.*" = { queue = "mail", priority = "low" }\n'
    )
    config = Config.load(environ={})
    assert config.queue_options == {"mail": QueueOptions(concurrency=5, bypass_priority=9)}
    assert [(rule.pattern, rule.route, rule.origin) for rule in config.rules] == [
        ("pay.*", Route(queue="money"), f"file {here / 'pyproject.toml'}"),
        ("mail.*", Route(queue="mail", priority=2), f"file {here / 'pyproject.toml'}"),
    ]
    variables = {"HOLDFAST_QUEUE": '{"x": {"retry_budget": 0.5}}', "HOLDFAST_ROUTES": '{"*": "rest"}'}
    config = Config.load(environ=variables)
    assert config.queue_options == {"x": QueueOptions(retry_budget=0.5)}
    assert [rule.origin for rule in config.rules] == ["variable HOLDFAST_ROUTES"]
    config = Config.load(environ=variables, queue={"mail": {"concurrency": 2}})
    assert config.queue_options == {"mail": QueueOptions(concurrency=2)}


def test_tables_survive_the_way_into_another_process_and_are_nobodys_to_change() -> None:
    given: dict[str, Any] = {"mail": {"concurrency": 2}}
    config = Config(queue=given, routes={"*": "rest"})
    given["mail"]["concurrency"] = 0
    assert config.queue_options["mail"].concurrency == 2
    assert Config(**json.loads(json.dumps(config.values()))) == config
    copy = pickle.loads(pickle.dumps(config))
    assert (copy, hash(copy)) == (config, hash(config))
