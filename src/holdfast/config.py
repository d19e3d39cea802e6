"""Every setting: its default, its bounds, where its value came from; the only reader of the environment.

Settings of one task or one call (retries, time limits, delays) are not here: they belong to the task.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.core.errors import ConfigError, InvalidOptions
from holdfast.core.queue import parse_served
from holdfast.core.queue_options import QueueOptions, parse_queue_options
from holdfast.core.routing import Rule, parse_routes
from holdfast.core.setting import PREFIX, Setting, Table
from holdfast.core.setting import setting as _setting
from holdfast.core.shown import shown
from holdfast.core.urls import check_redis, check_schema, is_postgres, mask, parse_listen, sqlite_path

_DAY_S = 86_400.0
_TEN_YEARS_S = 3650 * 86_400
_KIB = 1024

LOG_FORMATS = ("plain", "readable", "json")

_CONFIG_VARIABLE = "HOLDFAST_CONFIG"
_TEST_PREFIX = "HOLDFAST_TEST_"
# Kubernetes puts these into every pod beside a service called `holdfast` or `holdfast-…`: not for us.
_SERVICE_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$")


_WORDS = {"1": True, "yes": True, "true": True, "on": True, "0": False, "no": False, "false": False, "off": False}


class _Value(NamedTuple):
    value: Any
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Config:
    """Every setting of one app; `Config.load()` reads file and environment, `Config()` reads nothing."""

    url: str = _setting(
        "sqlite:///holdfast.db",
        "Where jobs are stored: `postgresql://user@host/database`, `sqlite:///file.db` or `:memory:`.",
    )
    schema: str = _setting("holdfast", "The schema of a PostgreSQL database in which the tables are.")
    pooled: bool = _setting(
        False, "Whether the way to PostgreSQL leads through a PgBouncer in transaction mode: then workers poll."
    )
    redis: str = _setting(
        "",
        "A Redis that wakes workers and shares out the work, as `redis://host:6379/0`; jobs stay in PostgreSQL.",
    )
    queues: tuple[str, ...] = _setting(
        (), "The queues a worker serves, as `mail` or, with a weight, `mail=3`; without any, every queue it knows."
    )
    queue: Mapping[str, Any] = _setting(
        Table(),
        "What holds for single queues: `concurrency`, `retry_budget`, `bypass_priority`.",
    )
    routes: Mapping[str, Any] = _setting(Table(), 'Where jobs go by the name of their task, as `"mail.*" = "mail"`.')
    concurrency: int = _setting(100, "Jobs that one worker process runs at once.", low=1, high=10_000)
    processes: int = _setting(1, "Worker processes that `holdfast worker` keeps running.", low=1, high=1_000)
    most_processes: int = _setting(
        0, "Worker processes up to which it goes while jobs wait and all are busy; 0: never more.", low=0, high=1_000
    )
    spares: int = _setting(
        1, "Worker processes that stand by, everything imported, to take the place of one that dies.", low=0, high=100
    )
    kill_after_s: float = _setting(
        2.0, "Seconds past its hard limit after which a run that has not ended is killed.", low=0.05, high=3_600
    )
    max_jobs: int = _setting(
        0, "Jobs after which a worker process is replaced by a new one; 0: never.", low=0, high=1_000_000_000
    )
    max_age_s: float = _setting(
        0.0, "Seconds after which a worker process is replaced by a new one; 0: never.", low=0, high=_TEN_YEARS_S
    )
    max_memory_mb: int = _setting(
        0, "Megabytes of memory above which a worker process is replaced by a new one; 0: any.", low=0, high=1_000_000
    )
    threads: int = _setting(32, "Threads of one worker process for `def` tasks.", low=1, high=1_000)
    isolates: int = _setting(
        4, "Processes of one worker process for tasks with `isolate=True`, started when needed.", low=1, high=1_000
    )
    lease_s: float = _setting(
        10.0, "Seconds without a heartbeat after which a worker's jobs go to others.", low=0.5, high=3_600
    )
    grace_s: float = _setting(
        30.0, "Seconds that running jobs get to end when a worker is told to stop.", low=0, high=86_400
    )
    poll_s: float = _setting(
        1.0, "Seconds between looks into the store when nothing announces work.", low=0.01, high=60
    )
    wait_s: float = _setting(5.0, "Seconds that an enqueue waits while its queue is full.", low=0, high=3_600)
    high_watermark: int = _setting(
        10_000, "Ready and parked jobs in a queue from which on enqueues wait.", low=1, high=1_000_000_000
    )
    low_watermark: int = _setting(
        2_000, "Ready and parked jobs to which a full queue has to drain to accept again.", low=0, high=1_000_000_000
    )
    payload_limit: int = _setting(
        1024 * _KIB, "Bytes that a job's arguments may take as JSON.", low=_KIB, high=64 * 1024 * _KIB
    )
    result_limit: int = _setting(
        1024 * _KIB, "Bytes that a job's result may take as JSON.", low=_KIB, high=64 * 1024 * _KIB
    )
    key_window_s: float = _setting(
        _DAY_S, "Seconds for which an idempotency key is remembered.", low=1, high=_TEN_YEARS_S
    )
    keep_succeeded_s: float = _setting(
        _DAY_S, "Seconds for which a succeeded job can be looked up.", low=0, high=_TEN_YEARS_S
    )
    keep_cancelled_s: float = _setting(
        7 * _DAY_S, "Seconds for which a cancelled job can be looked up.", low=0, high=_TEN_YEARS_S
    )
    unknown_after_s: float = _setting(
        300.0, "Seconds of asking again before an unanswered enqueue is `OutcomeUnknown`.", low=1, high=3_600
    )
    metrics_listen: str = _setting(
        "",
        "Where `holdfast worker` serves /metrics and /health, as `9464` (this machine only) or `0.0.0.0:9464`.",
    )
    log_format: str = _setting("plain", "How the command line writes its log: `plain`, `readable` or `json`.")
    app: str = _setting("", "The app that the command line works on, as `module:attribute`.")
    failpoints: str = _setting("", "Faults to inject at named moments; for tests only.")

    _origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for setting in self.settings():
            given = getattr(self, setting.name)
            try:
                object.__setattr__(self, setting.name, _checked(setting, given))
            except ConfigError as error:
                raise ConfigError(f"setting {setting.name} ({self.origin(setting.name)}): {error}") from None
        if self.low_watermark >= self.high_watermark:
            raise ConfigError(
                f"setting low_watermark ({self.origin('low_watermark')}): {self.low_watermark} is not below "
                f"high_watermark, which is {self.high_watermark} ({self.origin('high_watermark')})"
            )
        if 0 < self.most_processes < self.processes:
            raise ConfigError(
                f"setting most_processes ({self.origin('most_processes')}): {self.most_processes} is below processes, "
                f"which is {self.processes} ({self.origin('processes')})"
            )

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """The table of settings, in the order in which they are documented."""
        return tuple(Setting(f.name, f.default, **f.metadata) for f in fields(cls) if f.metadata)

    @classmethod
    def load(
        cls, *, path: str | Path | None = None, environ: Mapping[str, str] | None = None, **arguments: Any
    ) -> Config:
        """Read the settings: arguments go before the environment, which goes before the file.

        The file is `path`, else the one that HOLDFAST_CONFIG names, else `holdfast.toml`, else the table
        `[tool.holdfast]` of `pyproject.toml`; the latter two are looked for in the current directory only,
        never above it. One file is read, the first of these. A variable that is empty and an argument that is
        None count as not given.
        """
        environ = os.environ if environ is None else environ
        known = {setting.name: setting for setting in cls.settings()}
        given: dict[str, _Value] = {}
        if path is not None:
            given.update(_from_file(Path(path), "argument path", known))
        elif named := environ.get(_CONFIG_VARIABLE, "").strip():
            given.update(_from_file(Path(named), f"variable {_CONFIG_VARIABLE}", known))
        else:
            here = [file for file in (Path("holdfast.toml"), Path("pyproject.toml")) if file.is_file()]
            given.update(item for file in here[:1] for item in _from_file(file, "found here", known))
        given.update(_from_environment(environ, known))
        given.update(_from_arguments(arguments, known))
        return cls(
            **{name: value for name, (value, _) in given.items()},
            _origins={name: origin for name, (_, origin) in given.items()},
        )

    def with_arguments(self, **arguments: Any) -> Config:
        """The same settings, but for these; neither file nor environment is read again."""
        known = {setting.name: setting for setting in self.settings()}
        given = dict(_from_arguments(arguments, known))
        values = {name: getattr(self, name) for name in known}
        return Config(
            **values | {name: value for name, (value, _) in given.items()},
            _origins={name: self.origin(name) for name in known}
            | {name: origin for name, (_, origin) in given.items()},
        )

    @property
    def served(self) -> dict[str, float | None]:
        """The names of the queues that a worker serves, with the weights that were given to them here."""
        return parse_served(self.queues)

    @property
    def queue_options(self) -> dict[str, QueueOptions]:
        """What holds for single queues, by their names."""
        return parse_queue_options(self.queue)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The routes, with where they were given."""
        return parse_routes(self.routes, self.origin("routes"))

    def origin(self, name: str) -> str:
        """Where a setting's value came from: `default`, `file …`, `variable …` or `argument …`."""
        known = {setting.name: setting for setting in self.settings()}
        if name not in known:
            raise _unknown(name, known, "Config.origin")
        if name in self._origins:
            return self._origins[name]
        return "default" if getattr(self, name) == known[name].default else f"argument {name}"

    def values(self) -> dict[str, Any]:
        """Every setting's value, secrets included: `Config(**values)` is the same again."""
        return {setting.name: getattr(self, setting.name) for setting in self.settings()}

    def masked(self) -> dict[str, Any]:
        """Every setting's value, fit to be shown: without a password."""
        return self.values() | {"url": mask(self.url), "redis": mask(self.redis)}

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value!r}' for name, value in self.masked().items())})"


def child_environment(**settings: str) -> dict[str, str]:
    """The environment for a process of ours in which these settings hold."""
    return os.environ | {PREFIX + name.upper(): value for name, value in settings.items()}


def _checked(setting: Setting, value: Any) -> Any:
    """The value in its field's type; refused where it is not one."""
    wrong = ConfigError(f"{mask(shown(value, 1_000_000))} is not {setting.requirement}")
    match setting.default:
        case bool():
            if not isinstance(value, bool):
                raise wrong
            return value
        case int() | float():
            kinds = int if isinstance(setting.default, int) else (int, float)
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise wrong
            assert setting.low is not None
            assert setting.high is not None
            if not setting.low <= value <= setting.high:
                raise wrong
            return type(setting.default)(value)
        case tuple():
            names = value
            if isinstance(value, str):
                names = value.split(",") if value.strip() else ()
            if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) and n.strip() for n in names):
                raise wrong
            try:
                parse_served(names)
            except InvalidOptions as error:
                raise ConfigError(str(error)) from None
            return tuple(dict.fromkeys(name.strip() for name in names))
        case Table():
            if not isinstance(value, Mapping):
                raise wrong
            try:
                parse_queue_options(value) if setting.name == "queue" else parse_routes(value, "")
                return Table(json.loads(json.dumps(value)))  # a copy, in the types that another process reads
            except (InvalidOptions, TypeError, ValueError) as error:
                raise ConfigError(str(error)) from None
        case _:
            if not isinstance(value, str):
                raise wrong
            if setting.name == "url" and not is_postgres(value):
                sqlite_path(value)
            if setting.name == "schema":
                check_schema(value)
            if setting.name == "redis" and value:
                check_redis(value)
            if setting.name == "metrics_listen" and value:
                parse_listen(value)
            if setting.name == "log_format" and value not in LOG_FORMATS:
                raise ConfigError(f"{shown(value)} is not one of {', '.join(LOG_FORMATS)}")
            return value


def _from_file(path: Path, named_by: str, known: Mapping[str, Setting]) -> Iterator[tuple[str, _Value]]:
    path = path.absolute()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"settings file {path} ({named_by}) cannot be read: {error.strerror}") from error
    # Also RecursionError and a bare ValueError: for brackets in brackets, and for a number of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"settings file {path} ({named_by}) is not valid TOML: {error}") from error
    if path.name == "pyproject.toml":
        table = _table_of(_table_of(table, "tool", path), "holdfast", path)
    for name, value in table.items():
        if name not in known:
            raise _unknown(name, known, f"file {path}")
        yield name, _Value(value, f"file {path}")


def _table_of(table: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    inner = table.get(name, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"{name!r} in file {path} is {shown(inner)}: settings go under the heading [tool.holdfast]")
    return inner


def _from_environment(environ: Mapping[str, str], known: Mapping[str, Setting]) -> Iterator[tuple[str, _Value]]:
    variables = {setting.variable: setting for setting in known.values()}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        text = environ[variable].strip()
        if variable in variables:
            if text:
                setting = variables[variable]
                yield setting.name, _Value(_parsed(setting, text), f"variable {variable}")
        elif not (variable == _CONFIG_VARIABLE or variable.startswith(_TEST_PREFIX) or _SERVICE_LINK.search(variable)):
            raise _unknown(variable, [*variables, _CONFIG_VARIABLE], "the environment")


def _parsed(setting: Setting, text: str) -> Any:
    """The number or table that a variable's text spells; other text as it is, for the check to refuse."""
    if isinstance(setting.default, bool):
        return _WORDS.get(text.lower(), text)
    if isinstance(setting.default, Table):
        with contextlib.suppress(ValueError):
            return json.loads(text)
        return text
    if not isinstance(setting.default, (int, float)):
        return text
    try:
        return type(setting.default)(text)
    except ValueError:
        return text


def _from_arguments(arguments: Mapping[str, Any], known: Mapping[str, Setting]) -> Iterator[tuple[str, _Value]]:
    for name, value in arguments.items():
        if name not in known:
            raise _unknown(name, known, "an argument")
        if value is not None:
            yield name, _Value(value, f"argument {name}")


def _unknown(name: str, known: Iterable[str], where: str) -> ConfigError:
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(names)}"
    return ConfigError(f"there is no setting {name} (in {where}): {hint}")
