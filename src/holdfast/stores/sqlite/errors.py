"""Translates sqlite3's errors into ours, once, by their codes rather than their words."""

from __future__ import annotations

import sqlite3

from holdfast.core.errors import StoreBroken, StoreDataError, StoreError, StoreUnavailable

_TRANSIENT = {
    sqlite3.SQLITE_BUSY: "it is locked by another process; the write is tried again",
    sqlite3.SQLITE_LOCKED: "it is locked; the write is tried again",
    sqlite3.SQLITE_FULL: "the disk is full; nothing of this write was kept; free some space",
    sqlite3.SQLITE_IOERR: "the disk reported an error; check its health and free space",
    sqlite3.SQLITE_NOMEM: "memory ran out",
    sqlite3.SQLITE_INTERRUPT: "the statement was interrupted",
    sqlite3.SQLITE_PROTOCOL: "its locks are contended; the write is tried again",
}
_BROKEN = {
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database; name another file, or move this one away",
    sqlite3.SQLITE_CORRUPT: "the database is damaged; restore it from a backup, or `.recover` it with the "
    "sqlite3 shell",
    sqlite3.SQLITE_READONLY: "it is read-only; give this user the right to write the file and its directory",
    sqlite3.SQLITE_PERM: "permission was denied; give this user the right to write the file and its directory",
    sqlite3.SQLITE_AUTH: "access was denied",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the directory exists and that this user may write there",
}


def translate(error: Exception, path: str) -> StoreError:
    """Our error for one of sqlite3's; the original stays its cause."""
    if isinstance(error, UnicodeEncodeError | OverflowError):  # a lone surrogate, a number of over 64 bits
        return StoreDataError(f"SQLite store {path} cannot keep a value: {error}")
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    where = f"SQLite store {path}"
    if primary in _TRANSIENT:
        return StoreUnavailable(f"{where}: {_TRANSIENT[primary]} ({error})")
    if primary in _BROKEN:
        return StoreBroken(f"{where}: {_BROKEN[primary]} ({error})")
    if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError):
        return StoreDataError(f"{where} refuses a row: {error}")
    return StoreBroken(f"{where}: {error}")
