"""Translates asyncpg's errors into ours, once, by SQLSTATE rather than by words."""

from __future__ import annotations

import asyncpg

from holdfast.core.errors import HoldfastError, LeaseLost, StoreBroken, StoreDataError, StoreUnavailable
from holdfast.stores.postgres.connections import NotConnected

#: Raised by our own functions: the worker has no valid lease.
LEASE_LOST = "HF001"
#: Rolled back for certain, and worth another try at once: serialization failure, deadlock.
ROLLED_BACK = frozenset({"40001", "40P01"})
LOCK_TIMEOUT = "55P03"

# The class of a SQLSTATE is its first two characters.
_TRANSIENT = {
    "08": "the connection failed",
    "25": "the server is read-only, as a standby is; the write is tried again",
    "40": "the transaction was rolled back",
    "53": "the server has run out of something",
    "55": "a row is locked, or the server is not ready",
    "57": "the server is shutting down, or somebody intervened",
    "58": "the server's system reported an error",
    "XX": "the server reported an internal error",
}
_DATA = frozenset({"22", "23"})
_REMEDY = {
    "28": "check user and password in the URL, and the server's pg_hba.conf",
    "3D": "create the database, or correct its name in the URL",
    "3F": "run `holdfast migrate`",
    "42501": "grant this role what it needs; the docs on PostgreSQL list the grants of each role",
    "42P01": "run `holdfast migrate`",
    "42883": "run `holdfast migrate`",
    "42703": "run `holdfast migrate`",
}
# The server may have committed before it, or the way to it, broke.
_PERHAPS_COMMITTED = ("08", "57P", "XX")


def translate(error: BaseException, place: str) -> HoldfastError:
    """Our error for one of asyncpg's, or of the network's; the original stays its cause."""
    where = f"PostgreSQL store {place}"
    if isinstance(error, NotConnected) and error.__cause__ is not None:
        ours = translate(error.__cause__, place)
        if not isinstance(ours, StoreUnavailable):
            return ours
        return StoreUnavailable(f"{where} cannot be reached: {_words(error.__cause__)}")
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        kind = state[:2]
        if state == LEASE_LOST:
            return LeaseLost(f"{error}: it was declared dead or has run out")
        if kind in _DATA:
            return StoreDataError(f"{where} refuses a row: {error}")
        if kind in _TRANSIENT:
            unknown = state.startswith(_PERHAPS_COMMITTED)
            return StoreUnavailable(f"{where}: {_TRANSIENT[kind]} ({error})", unknown=unknown)
        remedy = _REMEDY.get(state) or _REMEDY.get(kind)
        return StoreBroken(f"{where}: {error}" + (f"; {remedy}" if remedy else ""))
    if isinstance(error, asyncpg.DataError | ValueError | OverflowError | UnicodeEncodeError):
        return StoreDataError(f"{where} cannot keep a value: {error}")
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError):
        return StoreUnavailable(f"{where} gave no answer: {_words(error)}", unknown=True)
    return StoreBroken(f"{where}: {type(error).__name__}: {error}")


def _words(error: BaseException) -> str:
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)


def is_rolled_back(error: BaseException) -> bool:
    """Whether nothing of the transaction was kept, so that it may be repeated as it is."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in ROLLED_BACK
