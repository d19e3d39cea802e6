"""Opens the file: connections with their pragmas, the checks that give clear errors, migrations. No verbs here."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from holdfast.core.errors import NotOpen, StoreBroken
from holdfast.runtime.failpoints import FailpointHit, failpoint
from holdfast.stores.moments import MIGRATE_BEGIN, MIGRATE_COMMITTED, MIGRATE_INSIDE, struck
from holdfast.stores.sqlite.errors import translate
from holdfast.stores.sqlite.statements import migrations
from holdfast.stores.status import StoreStatus

APPLICATION_ID = 0x484F4C44  # "HOLD"
BUSY_TIMEOUT_S = 5.0
_MOUNTS = Path("/proc/self/mounts")
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "fuse.sshfs", "ceph", "glusterfs"}
)


def open_writer(path: str) -> sqlite3.Connection:
    """The one connection that writes; autocommit, because the writer speaks BEGIN and COMMIT itself."""
    _check_place(path)
    _check_inheritance(path)
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
        )
    except sqlite3.Error as error:
        raise translate(error, path) from error
    try:
        _check_owner(connection, path)
        mode = _enter_wal(connection)
        if mode != "wal":
            raise StoreBroken(f"SQLite store {path}: this file system does not allow WAL mode (got {mode!r})")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA temp_store = MEMORY")
        migrate(connection)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except FailpointHit as hit:
        connection.close()
        raise struck(hit) from hit
    except StoreBroken:
        connection.close()
        raise
    return connection


def open_reader(path: str) -> sqlite3.Connection:
    """A connection that cannot write, for reports; where the file is gone it makes no other in its place."""
    place = f"file:{quote(path)}?mode=rw"
    connection = sqlite3.connect(place, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


def file_identity(path: str) -> tuple[int, int]:
    """Which file this name stands for now; (0, 0) where there is none."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_dev, found.st_ino


#: Files that are open, and in which process: a forked child inherits this together with its parent's connections.
_open: Counter[tuple[str, int]] = Counter()


def note_open(path: str) -> None:
    _open[str(Path(path).resolve()), os.getpid()] += 1


def note_closed(path: str) -> None:
    _open[str(Path(path).resolve()), os.getpid()] -= 1


def _check_inheritance(path: str) -> None:
    place, here = str(Path(path).resolve()), os.getpid()
    parent = next((pid for (open_place, pid), count in _open.items() if open_place == place and count > 0), here)
    if parent != here:
        # SQLite's locks are the process's: parent and child would undo each other's, and accepted jobs be lost.
        raise NotOpen(
            f"SQLite store {path}: it was open in process {parent} when this one was forked from it, which SQLite "
            "cannot bear; close the app before you fork, or start processes by spawn"
        )


def store_status(path: str) -> StoreStatus:
    """What is in the file, read without migrating or creating it; StoreBroken where it cannot be a store."""
    version, exists = 0, path != ":memory:" and Path(path).exists()
    if path != ":memory:":
        _check_place(path)
    if exists:
        try:
            with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S)) as db:
                _check_owner(db, path)
                version = _version(db)
        except sqlite3.Error as error:
            raise translate(error, path) from error
    known = migrations()
    return StoreStatus(
        place=path,
        exists=exists,
        schema=version,
        newest=known[-1][0],
        pending=tuple(name for number, name, _ in known if number > version),
        engine=f"SQLite {sqlite3.sqlite_version}",
    )


def check_process(opened_by: int) -> None:
    """A forked child has neither the threads nor, safely, the connections of its parent."""
    if os.getpid() != opened_by:
        raise NotOpen(
            f"the store was opened by process {opened_by}, and this is its fork {os.getpid()}: "
            "close the app before you fork, and open it in the child"
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, each step in a transaction of its own; several processes may try at once."""
    known = migrations()
    if _version(connection) == known[-1][0]:
        return
    for version, _, script in known:
        failpoint(MIGRATE_BEGIN)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) < version:  # asked again, now that we hold the lock
                for statement in _split(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {version}")
            failpoint(MIGRATE_INSIDE)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        failpoint(MIGRATE_COMMITTED)


def _enter_wal(connection: sqlite3.Connection) -> str:
    # The switch takes an exclusive lock and does not honour the busy timeout: two first openers can collide.
    for attempt in range(50):
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == 49:
                raise
            time.sleep(0.02)
    raise AssertionError("unreachable")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _split(script: str) -> list[str]:
    # executescript() commits on its own; a migration must be one transaction.
    statements: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _check_place(path: str) -> None:
    directory = Path(path).resolve().parent
    if not directory.exists():
        raise StoreBroken(f"SQLite store {path}: the directory {directory} does not exist; create it first")
    if Path(path).is_dir():
        raise StoreBroken(f"SQLite store {path}: this is a directory; name a file in it")
    if kind := _network_file_system(directory):
        raise StoreBroken(
            f"SQLite store {path}: {directory} is on a network file system ({kind}), whose locks cannot be "
            "trusted; use a local disk, or PostgreSQL"
        )
    if Path(path).exists() and not os.access(path, os.W_OK):
        raise StoreBroken(f"SQLite store {path}: the file is read-only for this user; it must be writable")
    if not os.access(directory, os.W_OK):
        raise StoreBroken(
            f"SQLite store {path}: the directory {directory} is read-only for this user; SQLite writes its log "
            "beside the file"
        )


def _network_file_system(directory: Path) -> str | None:
    """The type of a network file system, where the platform tells (Linux)."""
    try:
        mounts = _MOUNTS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    best, kind = "", ""
    for fields in (line.split(" ") for line in mounts):
        point = fields[1].replace("\\040", " ") if len(fields) > 2 else ""
        if point and directory.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind if kind in _NETWORK_FILE_SYSTEMS else None


def _check_owner(connection: sqlite3.Connection, path: str) -> None:
    # In this order: another process may be making the tables, and it makes its mark in the same transaction.
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if tables and owner != APPLICATION_ID:
        raise StoreBroken(
            f"SQLite store {path}: this is the database of another program; give Holdfast a file of its own"
        )
    current = _version(connection)
    newest = migrations()[-1][0]
    if current > newest:
        raise StoreBroken(
            f"SQLite store {path} has schema version {current}, newer than this Holdfast knows ({newest}); "
            "upgrade the holdfast package"
        )
