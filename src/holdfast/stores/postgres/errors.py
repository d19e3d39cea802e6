"""Translates asyncpg's errors into ours, once, by SQLSTATE rather than by words."""

from __future__ import annotations

import asyncpg

from holdfast.core.errors import (
    HoldfastError,
    InvalidOptions,
    KeyHeld,
    LeaseLost,
    StoreBroken,
    StoreDataError,
    StoreUnavailable,
)
from holdfast.stores.postgres.connections import NotConnected

#: Raised by our own functions: the worker has no valid lease.
LEASE_LOST = "HF001"
#: The same: this is to be done while nobody is beside us (`rules.by_myself`).
TO_BE_ALONE = "HF002"
#: Rolled back for certain, and worth another try at once: serialization failure, deadlock, and that.
ROLLED_BACK = frozenset({"40001", "40P01", TO_BE_ALONE})
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
#: What the driver, or the network under it, raises; anything else is a bug and stays what it is.
DRIVER_ERRORS = (
    NotConnected,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    ValueError,
    OverflowError,
)

_GUESTS_FAULT = {
    "25P02": "its transaction has failed before; roll it back first",
    "25006": "its transaction is read-only, and a job is a row",
}
_NO_STORE_THERE = frozenset({"3F000", "42P01", "42883", "42703"})
# The server may have committed before it, or the way to it, broke.
_PERHAPS_COMMITTED = ("08", "57P", "XX")


def translate(error: BaseException, place: str) -> HoldfastError:
    """Our error for one of the driver's; the original stays its cause."""
    where = f"PostgreSQL store {place}"
    if isinstance(error, NotConnected) and error.__cause__ is not None:
        if isinstance(error.__cause__, ValueError):  # what the driver says of a URL, and of the files that it names
            return StoreBroken(f"{where} cannot be reached by its URL: {error.__cause__}")
        ours = translate(error.__cause__, place)
        if not isinstance(ours, StoreUnavailable):
            return ours
        return StoreUnavailable(f"{where} cannot be reached: {_words(error.__cause__)}")
    if isinstance(error, asyncpg.PostgresError):
        return _of_state(error.sqlstate or "", error, where)
    if isinstance(error, ValueError | OverflowError):
        return StoreDataError(f"{where} cannot keep a value: {error}")
    # InternalClientError: what asyncpg says of a connection that the server has ended while nobody looked.
    return StoreUnavailable(f"{where} gave no answer: {_words(error)}", unknown=True)


def _of_state(state: str, error: BaseException, where: str) -> HoldfastError:
    kind = state[:2]
    if state == LEASE_LOST:
        return LeaseLost(f"{error}: it was declared dead or has run out")
    if state == TO_BE_ALONE:
        return StoreUnavailable(f"{where}: the transaction was rolled back ({error})")
    if kind in _DATA:
        return StoreDataError(f"{where} refuses a row: {error}")
    if kind in _TRANSIENT:
        unknown = state.startswith(_PERHAPS_COMMITTED)
        return StoreUnavailable(f"{where}: {_TRANSIENT[kind]} ({error})", unknown=unknown)
    remedy = _REMEDY.get(state) or _REMEDY.get(kind)
    return StoreBroken(f"{where}: {error}" + (f"; {remedy}" if remedy else ""))


def translate_guest(error: Exception, place: str) -> Exception:
    """Our error for one that came over a user's connection, of whichever driver; nothing was enqueued.

    That the user's whole transaction has to be repeated comes as the driver says it: whoever repeats knows it so.
    """
    state: str | None = getattr(error, "sqlstate", None)
    if state is None:
        return StoreUnavailable(f"the connection given to connection= gave no answer: {_words(error)}")
    if state in ROLLED_BACK:
        return error
    if state == LOCK_TIMEOUT:
        return KeyHeld(
            "an idempotency key or unique key is held by another transaction that is still open; nothing was enqueued, "
            "and your transaction can go on: try again, or let the other one end first"
        )
    if state in _GUESTS_FAULT:
        return InvalidOptions(f"connection=: {_GUESTS_FAULT[state]} ({_words(error)})")
    if state in _NO_STORE_THERE:
        return InvalidOptions(
            f"connection=: leads to a database that has no such tables; it needs to be that of {place}"
        )
    return _of_state(state, error, f"PostgreSQL store {place}, over the connection that was given")


def _words(error: BaseException) -> str:
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)


def is_rolled_back(error: BaseException) -> bool:
    """Whether nothing of the transaction was kept, so that it may be repeated as it is."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in ROLLED_BACK


def again(why: str) -> asyncpg.PostgresError:
    """To be raised where a transaction is to be repeated, as after a serialization failure."""
    return asyncpg.SerializationError(why)


def is_to_be_alone(error: BaseException) -> bool:
    """Whether it has to be repeated while nobody is beside it."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate == TO_BE_ALONE
