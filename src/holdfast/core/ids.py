"""Job ids: UUIDv7 (RFC 9562), strictly increasing within a process. Tokens are the
store's business.

The client makes the id, so that an enqueue whose answer was lost can be repeated safely.
"""

from __future__ import annotations

import math
import os
import random
import re
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID, SafeUUID

from holdfast.core.errors import InvalidArguments
from holdfast.core.shown import shown

JobId: TypeAlias = UUID

_RANDOM_BITS = 74  # what a version 7 id holds beside 48 bits of milliseconds, the version and the variant
_LOW_BITS = 62
_LOW_MASK = (1 << _LOW_BITS) - 1
_MIDDLE_MASK = (1 << 12) - 1
_VERSION_AND_VARIANT = (7 << 76) | (2 << 62)
_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}\1[0-9a-fA-F]{12}")

_new_uuid = UUID.__new__
_set_int = UUID.__dict__["int"].__set__
_set_is_safe = UUID.__dict__["is_safe"].__set__
_UNKNOWN = SafeUUID.unknown


class IdFactory:
    """Makes ids; safe to share between threads, and across a fork.

    Time and random bits are handled as one number that only grows: a new millisecond starts at a fresh random
    point in the lower half of its range; within it, and when the clock goes back, the next id is a random
    step above the last one, and overflow carries into the milliseconds.
    """

    def __init__(self, now_ms: Callable[[], int], randbits: Callable[[int], int] | None = None) -> None:
        self._now_ms = now_ms
        # A generator of our own: a program that seeds the global one must not make its ids collide.
        self._random = random.Random()
        self._randbits = randbits or self._random.getrandbits
        self._lock = threading.Lock()
        self._last = -1
        _factories.add(self)

    def __call__(self) -> UUID:
        with self._lock:
            number = self._now_ms() << _RANDOM_BITS
            if number > self._last:
                number |= self._randbits(_RANDOM_BITS - 1)
            else:
                number = self._last + 1 + self._randbits(32)
            self._last = number
        # UUID's constructor checks and converts for a microsecond; these bits are right by construction.
        made = _new_uuid(UUID)
        _set_int(
            made,
            number >> _RANDOM_BITS << 80
            | (number >> _LOW_BITS & _MIDDLE_MASK) << 64
            | number & _LOW_MASK
            | _VERSION_AND_VARIANT,
        )
        _set_is_safe(made, _UNKNOWN)
        return made

    def _after_fork_in_child(self) -> None:
        self._lock = threading.Lock()  # another thread of the parent may have held the old one
        self._random.seed()
        # Go on above the parent's last id, but from a random point of our own.
        self._last = ((self._last >> _RANDOM_BITS) + 1) << _RANDOM_BITS | self._randbits(_RANDOM_BITS - 1)


_factories: weakref.WeakSet[IdFactory] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for factory in list(_factories):
        factory._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _milliseconds(now_ns: Callable[[], int] = time.time_ns) -> int:
    return now_ns() // 1_000_000


new_job_id: Final = IdFactory(_milliseconds)
"""`new_job_id()` is a new id, greater than every earlier one of this process."""


def parse_job_id(text: str | UUID) -> UUID:
    """The id that a person or another program wrote, with or without hyphens."""
    if isinstance(text, UUID):
        return text
    if isinstance(text, str) and _UUID_TEXT.fullmatch(text):
        return UUID(text)
    raise InvalidArguments(
        f"{shown(text)} is not a job id; one looks like 01890a5d-ac96-774b-bcce-b302099a8057: copy it whole"
    )


def timestamp_of(job_id: UUID) -> float:
    """When the id was made, in seconds since 1970 by its maker's clock, to the millisecond."""
    if job_id.version != 7:
        raise InvalidArguments(f"job id {job_id} holds no time: it is not a version 7 UUID made by Holdfast")
    return (job_id.int >> 80) / 1000


def first_id_at(at_s: float) -> UUID:
    """The least id of the millisecond that these seconds since 1970 fall into, or begin: for ranges of ids by time."""
    milliseconds = min(max(0, math.ceil(at_s * 1000)), (1 << 48) - 1)
    return UUID(int=milliseconds << 80)
