"""By what else than its type an error is known, for rows of the table of errors: codes of networks and of databases.

Their first lines complete the sentence "… that tells" in the documentation of the table.
"""

from __future__ import annotations

import errno
import re
from typing import Final

from holdfast.core.stood_for import stood_for

#: The way there, or the other end of it.
_NETWORK: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("ENETDOWN", "ENETUNREACH", "ENETRESET", "EHOSTDOWN", "EHOSTUNREACH", "ENONET"),
        *("ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EPIPE", "ESHUTDOWN"),
    )
    if hasattr(errno, name)
)
#: asyncio tried several addresses, and each of them failed in another way, or by another name.
_SEVERAL: Final = "Multiple exceptions: "
_NUMBER: Final = re.compile(r"\[Errno (-?\d+)\]")
_LOCK_NOT_AVAILABLE: Final = "55P03"
_ROLLED_BACK: Final = "40"  # the class of deadlocks and serialization failures
_SQLITE: Final = ("sqlite3", "OperationalError")


def tells_of_the_network(exc: BaseException) -> bool:
    """of the network by its number (no route, unreachable, reset, refused, aborted, timed out)"""
    return any(isinstance(each, OSError) and _is_network(each) for each in stood_for(exc))


def tells_of_a_lock(exc: BaseException) -> bool:
    """of a lock, a deadlock or a serialization failure (SQLSTATE 40…, 55P03; SQLite: locked or busy)"""
    return any(_is_lock(each) for each in stood_for(exc))


def _is_network(exc: OSError) -> bool:
    if exc.errno is not None:
        return exc.errno in _NETWORK
    text = str(exc)
    numbers = _NUMBER.findall(text) if text.startswith(_SEVERAL) else []
    return bool(numbers) and all(int(number) in _NETWORK for number in numbers)


def _is_lock(exc: BaseException) -> bool:
    for attribute in ("sqlstate", "pgcode"):
        state = getattr(exc, attribute, None)
        if isinstance(state, str):
            return state.startswith(_ROLLED_BACK) or state == _LOCK_NOT_AVAILABLE
    if (type(exc).__module__, type(exc).__name__) != _SQLITE:
        return False
    return "locked" in str(exc) or "busy" in str(exc)
