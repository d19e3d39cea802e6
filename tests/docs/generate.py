"""`python -m tests.docs.generate`: writes the parts of the documentation that are made from the code."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from rich.console import Console
from rich.text import Text
from tests.cli.demo_snapshot import SNAPSHOT
from tests.docs.http_reference import http_reference
from tests.docs.pages import ROOT
from tests.faults.table.page import page as faults_page
from typer.main import get_command
from typer.testing import CliRunner

import holdfast
from holdfast.cli.commands import root
from holdfast.cli.demo.view import picture
from holdfast.cli.examination import Finding
from holdfast.cli.exits import Exit
from holdfast.cli.fields import (
    breaker_fields,
    explanation_fields,
    job_fields,
    key_fields,
    limit_fields,
    queue_fields,
    rate_fields,
    route_fields,
    task_fields,
    worker_fields,
)
from holdfast.client.limits import LimitInfo
from holdfast.client.routes import RouteInfo
from holdfast.client.tasks import TaskInfo
from holdfast.config import Config
from holdfast.core import errors
from holdfast.core.api_key import ApiKey
from holdfast.core.breaker import CLOSED, Phase
from holdfast.core.error_table import BUILT_IN
from holdfast.core.explanation import Explanation
from holdfast.core.job import JobInfo
from holdfast.core.queue import QueueInfo, QueueRates
from holdfast.core.state import State
from holdfast.core.worker import WorkerInfo
from holdfast.observability.catalogue import CATALOGUE
from holdfast.stores.flow import BreakerInfo, SettingChange

END = "<!-- end -->"
ENV_HEAD = """\
# Every setting of Holdfast as a variable of the environment. Made from the code: python -m tests.docs.generate
#
# Copy this file to .env and take away the # before what you want to change; what is shown are the defaults.
# Holdfast does not read .env by itself: docs/configuration.md says how a shell, systemd and docker do.

# A file with settings, in place of holdfast.toml or pyproject.toml in the current directory.
#HOLDFAST_CONFIG=holdfast.toml
"""


def settings_table() -> str:
    """One row per setting."""
    rows = [f"| `{each.name}` | `{each.variable}` | {each.requirement} | {each.doc} |" for each in Config.settings()]
    return "\n".join(["| setting | variable | value | meaning |", "|---|---|---|---|", *rows])


def env_example() -> str:
    """Every setting as a variable, commented out, with its default; fit for a shell, systemd and docker."""
    parts = [ENV_HEAD]
    for each in Config.settings():
        value = ",".join(each.default) if isinstance(each.default, tuple) else each.default
        value = "" if value == {} else value
        shown = f"{value:g}" if isinstance(value, float) and value < 1e6 else value
        parts.append(f"# {each.doc.replace('`', '')}\n# Value: {each.requirement}.\n#{each.variable}={shown}\n")
    return "\n".join(parts)


def error_tree() -> str:
    """The drawing from the module's docstring, as it is."""
    text = inspect.getdoc(errors) or ""
    lines = text.splitlines()
    first = lines.index("HoldfastError")
    last = next(n for n in range(first, len(lines)) if not lines[n])
    return "\n".join(["```text", *lines[first:last], "```"])


def error_table() -> str:
    """One row per class: what else it is, what it carries, what it means."""
    rows = ["| error | also a | attributes | meaning |", "|---|---|---|---|"]
    classes = [each for each in vars(errors).values() if inspect.isclass(each) and each.__module__ == errors.__name__]
    for each in classes:
        assert each.__name__ in holdfast.__all__, f"{each.__name__} cannot be imported from holdfast"
        bases = [base.__name__ for base in each.__bases__ if base not in (errors.HoldfastError, Exception)]
        fields = _assigned(each)
        doc = " ".join((inspect.getdoc(each) or "").split())
        rows.append(f"| `{each.__name__}` | {_code(bases)} | {_code(fields)} | {doc} |")
    return "\n".join(rows)


def _assigned(error: type) -> list[str]:
    """The attributes that its constructor sets, in order."""
    init = vars(error).get("__init__")
    names = init.__code__.co_names if init is not None else ()
    source = inspect.getsource(init) if init is not None else ""
    return [name for name in names if f"self.{name} = " in source]


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def class_table() -> str:
    """One row per class of errors, in the order in which they are asked."""
    rows = ["| class | exceptions | HTTP status | what follows |", "|---|---|---|---|"]
    for each in BUILT_IN:
        names = [
            name.removeprefix("builtins.").replace("holdfast.core.errors.", "holdfast.") for name in each.exceptions
        ]
        done = {
            "backoff": "as the policy says",
            "retry_after": "after the time that the other side asks for, else as the policy says",
            "fixed": f"after about {each.delay:g} s" if each.delay is not None else "",
            "dead": "dead at once",
        }[each.then]
        done += "; counts against the breaker" if each.breaker else ""
        done += "" if each.max_attempts is None else f", {each.max_attempts} attempts at most"
        which = _code(names) + (f" that tells {inspect.getdoc(each.when)}" if each.when is not None else "")
        rows.append(f"| `{each.name}` | {which} | {', '.join(map(str, each.statuses))} | {done} |")
    return "\n".join([*rows, "| `other` | all others | all others | as the policy says |"])


def exit_table() -> str:
    """One row per exit code of the command line."""
    return "\n".join(["| code | meaning |", "|---|---|", *(f"| {each.value} | {each.meaning} |" for each in Exit)])


def field_lists() -> str:
    """The names of what `--json` prints, as the code makes them."""
    job = JobInfo(UUID(int=0), "", "", 0, "", State.READY, 0, None, datetime.now(UTC))
    worker = WorkerInfo(UUID(int=0), "", 0, 0, (), datetime.now(UTC), datetime.now(UTC), 0)
    kinds = {
        "job": job_fields(job),
        "queue": queue_fields(QueueInfo("", 0, 0, 0, 0, 0, 0, True, None)) | {"rates": None},
        "rates of a queue": rate_fields(QueueRates()),
        "worker": worker_fields(worker),
        "explanation": explanation_fields(Explanation(UUID(int=0), State.READY, ())),
        "limit": limit_fields(LimitInfo("", "rate", "", None, None, None, 0, 0, "")),
        "route": route_fields(RouteInfo("", None, None, "", 0)),
        "breaker": breaker_fields(BreakerInfo("", CLOSED, Phase.CLOSED, 0)),
        "task": task_fields(TaskInfo("", None, paused=False)),
        "key": key_fields(ApiKey("", "", frozenset(), datetime.now(UTC))),
        "change": dict.fromkeys(SettingChange._fields),
        "finding of `doctor`": dict.fromkeys(Finding._fields),
    }
    rows = [f"| {kind} | {_code(list(fields))} |" for kind, fields in kinds.items()]
    return "\n".join(["| what | fields |", "|---|---|", *rows])


def command_help() -> str:
    """What `--help` says, for every command."""
    parts = []
    for path in command_paths():
        shown = CliRunner().invoke(root, [*path, "--help"], prog_name="holdfast", env={"COLUMNS": "80", "TERM": "dumb"})
        parts += [f"### holdfast {' '.join(path)}".rstrip(), "", "```text", shown.output.rstrip(), "```", ""]
    return "\n".join(parts[:-1])


def command_paths() -> list[list[str]]:
    """Every command of the tree, each group before what is in it."""
    found: list[list[str]] = [[]]
    for name, command in get_command(root).commands.items():
        found.append([name])
        found += [[name, inner] for inner in getattr(command, "commands", {})]
    return found


def demo_picture() -> str:
    """A moment of `holdfast demo`, drawn as the command does."""
    width, height = 90, 29
    text = io.StringIO()
    console = Console(file=text, width=width, height=height, force_terminal=True, no_color=True)
    console.print(picture(SNAPSHOT, width=width, height=height))
    lines = [line.rstrip() for line in Text.from_ansi(text.getvalue()).plain.splitlines()]
    return "\n".join(["```text", *lines, "```"])


def metrics_table() -> str:
    """One row per metric."""
    rows = [
        f"| `{each.name}` | {each.kind} | {_code(list(each.labels))} | {each.source} | {each.help} |"
        for each in CATALOGUE
    ]
    return "\n".join(["| metric | kind | labels | from | meaning |", "|---|---|---|---|---|", *rows])


#: (page, part, what makes it)
PARTS: tuple[tuple[str, str, Callable[[], str]], ...] = (
    ("README.md", "demo", demo_picture),
    ("docs/reference/configuration.md", "settings", settings_table),
    ("docs/guides/observing.md", "metrics", metrics_table),
    ("docs/reference/errors.md", "tree", error_tree),
    ("docs/reference/errors.md", "table", error_table),
    ("docs/reference/errors.md", "classes", class_table),
    ("docs/reference/cli.md", "exit codes", exit_table),
    ("docs/reference/cli.md", "fields", field_lists),
    ("docs/reference/cli.md", "commands", command_help),
)

#: (file, what makes all of it)
FILES: tuple[tuple[str, Callable[[], str]], ...] = (
    (".env.example", env_example),
    ("docs/faults.md", faults_page),
    ("docs/reference/http.md", http_reference),
)


def renewed(text: str, part: str, content: str) -> str:
    """The page with that part as the code has it now."""
    begin = f"<!-- generated {part}: python -m tests.docs.generate -->"
    head, marker, rest = text.partition(begin)
    _, end, tail = rest.partition(END)
    assert marker, f"the line {begin} is missing"
    assert end, f"the line {END} after {begin} is missing"
    return f"{head}{begin}\n{content}\n{END}{tail}"


def main() -> None:
    for page, part, make in PARTS:
        path: Path = ROOT / page
        path.write_text(renewed(path.read_text("utf-8"), part, make()), "utf-8")
        print(f"{page}: {part}")
    for name, make in FILES:
        (ROOT / name).write_text(make(), "utf-8")
        print(name)


if __name__ == "__main__":
    main()
