"""Settings from files, the environment and arguments, URLs of stores, armed failpoints: right, or ConfigError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from tests.fuzz.examples import fuzzed
from tests.fuzz.outside import BEYOND_FLOATS, UNWRITABLE, any_text, any_value

from holdfast.config import Config, check_schema, is_postgres, mask, sqlite_path
from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.runtime.failpoints import parse

SETTINGS = Config.settings()
NAMES = [setting.name for setting in SETTINGS]
VARIABLES = [setting.variable for setting in SETTINGS]
#: What the system takes as a variable.
variable_text = any_text.map(lambda text: text.replace("\0", ""))

toml_values = (
    st.sampled_from(
        [
            "true", "nan", "-inf", "1e400", "0x" + "f" * 5_000, "9" * 5_000, "1979-05-27", "[1, 'a']", "'mail=3'",
            "[" * 5_000, "{a = 1}", "['mail', 'sms=2']", '"""', "''", "1_000", "'sqlite:///x.db'", "'a:b@c://d'",
        ]
    )
    | st.integers().map(str)
    | st.floats().map(str)
    | any_text.map(repr)
)  # fmt: skip
toml_lines = st.tuples(st.sampled_from(NAMES) | any_text, toml_values).map(" = ".join)
toml_texts = (
    st.lists(toml_lines | any_text, max_size=4).map("\n".join).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.lists(toml_lines, max_size=3).map(
        lambda lines: "\n".join(["[tool.holdfast]", *lines]).encode("utf-8", "replace")
    )
    | st.sampled_from([b"tool = 1", b"tool = 0x" + b"f" * 5_000, b"[tool]\nholdfast = [1]"])
    | st.binary(max_size=100)
)


def _is_whole(config: Config) -> None:
    assert Config(**config.values()) == config
    assert config.served is not None
    assert repr(config)
    for setting in SETTINGS:
        value = getattr(config, setting.name)
        assert type(value) is type(setting.default)
        assert setting.low is None or setting.high is None or setting.low <= value <= setting.high


@fuzzed
@given(text=toml_texts, name=st.sampled_from(["holdfast.toml", "pyproject.toml"]))
@example(text=b"concurrency = " + b"9" * 5_000, name="holdfast.toml")
@example(text=b"concurrency = 0x" + b"f" * 5_000, name="holdfast.toml")
@example(text=b"a = " + b"[" * 5_000, name="holdfast.toml")
@example(text=b"tool = 0x" + b"f" * 5_000, name="pyproject.toml")
def test_a_settings_file_holds_or_is_refused(text: bytes, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    try:
        _is_whole(Config.load(path=file, environ={}))
    except ConfigError:
        return


@pytest.mark.parametrize("path", ["a\0b", "x" * 5_000, "", ".", "/dev/null/x", "\udcff"])
def test_a_settings_file_that_cannot_be_is_refused(path: str) -> None:
    for given_as in ({"path": path, "environ": {}}, {"environ": {"HOLDFAST_CONFIG": path}}):
        try:
            Config.load(**given_as)  # type: ignore[arg-type]
        except ConfigError:
            continue
        assert not path, "an empty variable counts as not given"


@fuzzed
@given(
    st.dictionaries(
        st.sampled_from(VARIABLES) | variable_text.map("HOLDFAST_".__add__) | variable_text,
        variable_text | st.integers().map(str) | st.floats().map(str),
        max_size=4,
    )
)
@example({"HOLDFAST_CONCURRENCY": "9" * 5_000})
@example({"HOLDFAST_LEASE_S": "nan"})
@example({"HOLDFAST_LEASE_S": "٣"})
def test_the_environment_holds_or_is_refused(environ: dict[str, str]) -> None:
    environ.pop("HOLDFAST_CONFIG", None)
    try:
        _is_whole(Config.load(environ=environ))
    except ConfigError:
        return


@fuzzed
@given(st.dictionaries(st.sampled_from(NAMES), any_value, max_size=4))
@example({"concurrency": UNWRITABLE})
@example({"lease_s": BEYOND_FLOATS})
@example({"queues": [["a"]]})
def test_arguments_hold_or_are_refused(arguments: dict[str, Any]) -> None:
    try:
        _is_whole(Config.load(environ={}, **arguments))
    except ConfigError:
        return


@fuzzed
@given(any_text | any_text.map("sqlite:///".__add__) | any_text.map("postgresql://".__add__))
@example("sqlite:///\ud800")
@example("sqlite:///a%00b")
def test_a_url_names_a_file_or_a_server_or_is_refused(url: str) -> None:
    try:
        config = Config(url=url)
    except ConfigError:
        return
    if is_postgres(url):
        return
    path = sqlite_path(config.url)
    assert path
    assert "\0" not in path


@fuzzed
@given(
    st.text("abcXYZ019!$%^*()_-+=,.;<>|~", min_size=8, max_size=20), st.sampled_from(["postgresql", "redis", "x", ""])
)
def test_a_password_is_never_shown(secret: str, scheme: str) -> None:
    for url in (f"{scheme}://ann:{secret}@host/db", f"{scheme}://host/db?user=ann&password={secret}"):
        shown = [mask(url), mask(repr(url))]
        try:
            shown.append(repr(Config(url=url)))
        except ConfigError as error:
            shown.append(str(error))
        assert not [text for text in shown if secret in text]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["a:", ":@", "password=", "password='", "//", "a:b@", "&pwd=x"])
def test_masking_takes_no_longer_than_its_text(piece: str) -> None:
    assert mask(piece * 100_000)


@fuzzed
@given(any_text)
def test_a_schema_that_is_accepted_needs_no_quotes(name: str) -> None:
    try:
        accepted = check_schema(name)
    except ConfigError:
        return
    assert accepted.isascii()
    assert accepted.replace("_", "a").isalnum()


armings = st.tuples(
    st.sampled_from(["C4", "R2", "settle_jobs.inside"]) | any_text,
    st.sampled_from(["=", "", " = ", "=="]),
    st.sampled_from(["fail", "kill9", "stop", "hang"]) | any_text,
    st.sampled_from(["", "@", "@1", "@0", "@-1", "@٣", "@" + "9" * 5_000]) | any_text,
).map("".join)


@fuzzed
@given(st.lists(armings, max_size=4).map(";".join) | any_text)
@example("C4=kill9@" + "9" * 5_000)
def test_failpoints_are_read_or_refused(text: str) -> None:
    try:
        armed = parse(text)
    except HoldfastError:
        return
    assert all(each.skip >= 0 for each in armed)
    assert parse(";".join(f"{name}={action}@{skip + 1}" for name, action, skip in armed)) == armed
