"""What `doctor` looks at: one function per matter, each giving findings; nothing here changes anything."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from holdfast import __version__
from holdfast.app import Holdfast
from holdfast.cli.exits import Refused, refusal
from holdfast.cli.finding import Finding
from holdfast.cli.redis_examination import examine_redis
from holdfast.cli.session import Session
from holdfast.config import Config
from holdfast.core.errors import ConfigError, HoldfastError, StoreUnavailable
from holdfast.core.queue import MOST_COUNTED, QueueInfo
from holdfast.core.shown import counted
from holdfast.core.urls import is_postgres, sqlite_path
from holdfast.stores.status import StoreStatus

_GIB = 1024**3
_FEW_BYTES = 0.1 * _GIB
_OLDEST_SQLITE = (3, 35, 0)
_TOLERATED = timedelta(seconds=5)


async def examine(session: Session) -> list[Finding]:
    """Everything, in the order in which one thing needs another; what cannot be looked at any more is left out."""
    findings = list(_installation())
    try:
        hf = session.load()
    except (HoldfastError, Refused) as error:
        return [*findings, _failure("settings" if isinstance(error, ConfigError) else "app", error)]
    findings += _app(session, hf)
    findings += _settings(hf.config)
    try:
        status = await hf.store_status()
    except HoldfastError as error:
        return [*findings, _failure("store", error, url=hf.config.url)]
    findings += _schema(status)
    if not is_postgres(hf.config.url):
        path = sqlite_path(hf.config.url)
        if path == ":memory:":
            return [
                *findings,
                Finding("warn", "store", "':memory:' ends with its process", "name a file, for more than tests"),
            ]
        findings += _place(path)
    if status.exists and not status.pending:
        try:
            beside = await examine_redis(hf.config)
            findings += beside
            if any(finding.subject == "redis" and finding.verdict == "fail" for finding in beside):
                return findings  # no app opens with it
            async with hf:
                findings += await _contents(hf, app=session.app or "MODULE:APP")
        except HoldfastError as error:
            findings.append(_failure("store", error, url=hf.config.url))
    return findings


def _failure(subject: str, error: Exception, *, url: str = "") -> Finding:
    if isinstance(error, StoreUnavailable) and is_postgres(url):
        remedy = "start the server, or name another with `--url`; it may also be the network"
        return Finding("fail", subject, str(error), remedy)
    said = refusal(error) if isinstance(error, HoldfastError) else error
    remedy = getattr(said, "hint", "")
    return Finding("fail", subject, str(said), "mend what the sentence names" if "doctor" in remedy else remedy)


def _installation() -> Iterator[Finding]:
    yield Finding("ok", "holdfast", __version__)
    yield Finding("ok", "python", f"{platform.python_version()} ({platform.python_implementation()})")


def _app(session: Session, hf: Holdfast) -> Iterator[Finding]:
    if session.app is None:
        yield Finding("ok", "app", "none: only the store is looked at")
    elif names := hf.tasks.names():
        yield Finding("ok", "app", f"{session.app} with {counted(len(names), 'task')}")
    else:
        remedy = "import the modules that define tasks where the app is made"
        yield Finding("warn", "app", f"{session.app} has no tasks", remedy)


def _settings(config: Config) -> Iterator[Finding]:
    masked = config.masked()
    for setting in Config.settings():
        name, value = setting.name, masked[setting.name]
        shown = ",".join(value) if isinstance(value, tuple) else str(value) if value != {} else ""
        found = f"{shown or 'none'} ({config.origin(name)})"
        if name == "failpoints" and value:
            yield Finding("fail", f"setting {name}", found, "faults are injected: unset it, it is for tests only")
        else:
            yield Finding("ok", f"setting {name}", found)


def _schema(status: StoreStatus) -> Iterator[Finding]:
    product, _, version = status.engine.partition(" ")  # PostgreSQL judges its own: it does not open on an old one
    old = product == "SQLite" and tuple(int(part) for part in version.split(".")) < _OLDEST_SQLITE
    remedy = "use a Python that brings SQLite 3.35 or newer" if old else ""
    yield Finding("fail" if old else "ok", "engine", status.engine, remedy)
    if status.pending:
        found = f"{status.place} has version {status.schema} of {status.newest}"
        if not status.exists:
            found = f"{status.place} does not exist yet"
        yield Finding("warn", "schema", found, "`holdfast migrate`, or start a worker")
    else:
        yield Finding("ok", "schema", f"{status.place} has version {status.schema}, the newest")


def _place(name: str) -> Iterator[Finding]:
    path = Path(name).absolute()
    free = shutil.disk_usage(path.parent).free
    verdict: Literal["ok", "warn", "fail"] = "fail" if free < _FEW_BYTES else "warn" if free < _GIB else "ok"
    remedy = "" if verdict == "ok" else "free some space: a full disk stops every write"
    yield Finding(verdict, "disk", f"{free / _GIB:.1f} GiB free at {path.parent}", remedy)
    for each in (path, path.parent):
        if not each.exists():
            continue
        mode = each.stat().st_mode
        who = stat.filemode(mode)
        if not os.access(each, os.R_OK | os.W_OK):
            yield Finding("fail", "permissions", f"{each} is {who}", "give this user the right to read and write it")
        elif mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            yield Finding("warn", "permissions", f"{each} is {who}: anybody may write it", f"`chmod o-w {each}`")
        else:
            yield Finding("ok", "permissions", f"{each} is {who}")


async def _contents(hf: Holdfast, *, app: str) -> list[Finding]:
    now = datetime.now(UTC)
    queues, workers = await hf.queues.list(), await hf.workers.list()
    newest = max((job.created_at for job in await hf.jobs.list(limit=1)), default=None)
    found: list[Finding] = []

    def say(bad: bool, subject: str, text: str, remedy: str) -> None:
        found.append(Finding("warn" if bad else "ok", subject, text, remedy if bad else ""))

    ahead = newest is not None and newest > now + _TOLERATED
    text = f"{now:%Y-%m-%dT%H:%M:%SZ}" + (f", but the newest job is of {newest:%Y-%m-%dT%H:%M:%SZ}" if ahead else "")
    say(ahead, "clock", text, "the clock was set back: let it follow a time server")
    ready, dead = sum(queue.ready for queue in queues), sum(queue.dead for queue in queues)
    alive = [worker for worker in workers if worker.lease_until > now]
    say(
        not alive and ready > 0,
        "workers",
        f"{len(alive)} at work, {counted(ready, 'job')} ready",
        f"start `holdfast worker {app}`",
    )
    late = len(workers) - len(alive)
    say(late > 0, "leases", f"{late} expired", "a worker died; any other one returns its jobs, so have one running")
    full, paused = (
        _names(queues, lambda queue: not queue.accepting),
        _names(queues, lambda queue: queue.settings.paused),
    )
    say(
        bool(full), "full queues", full or "none", "add workers, see what parked jobs wait for, or raise the watermarks"
    )
    say(bool(paused), "paused queues", paused or "none", "`holdfast queues resume NAME`, if that is not meant")
    parked = sum(queue.parked for queue in queues)
    why = "`holdfast jobs list --state parked` shows them, `holdfast jobs explain ID` says what each waits for"
    say(parked > 0, "parked jobs", str(parked), why)
    many = "+" if any(queue.dead >= MOST_COUNTED for queue in queues) else ""
    say(
        dead > 0,
        "dead letters",
        f"{dead}{many}",
        "`holdfast dead list` shows them, `holdfast dead replay` runs them again",
    )
    return found


def _names(queues: list[QueueInfo], which: Callable[[QueueInfo], bool]) -> str:
    return ", ".join(queue.name for queue in queues if which(queue))
