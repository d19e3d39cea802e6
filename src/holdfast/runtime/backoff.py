"""How long to wait before trying again, and the loop that does so; not for retries of jobs (core/retry)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.runtime.clock import Clock

T = TypeVar("T")


class Backoff:
    """Exponential waits with full jitter.

    1. The n-th wait is drawn evenly from 0 to base·2ⁿ, at most the cap: many callers that failed at
       the same moment do not come back at the same moment.
    2. It is never below a tenth of the base: a lucky draw must not become a hot loop.
    3. `reset` after a success starts over.
    """

    __slots__ = ("_base_s", "_cap_s", "_ceiling_s", "_rng")

    def __init__(self, base_s: float, cap_s: float, *, rng: Callable[[], float] = random.random) -> None:
        if not 0 < base_s <= cap_s < float("inf"):
            raise ValueError(f"Backoff(base_s={base_s!r}, cap_s={cap_s!r}): needs 0 < base_s <= cap_s, both finite")
        self._base_s = base_s
        self._cap_s = cap_s
        self._rng = rng
        self._ceiling_s = base_s

    def next(self) -> float:
        """Seconds to wait now; the following wait is drawn from twice the range."""
        ceiling_s = self._ceiling_s
        self._ceiling_s = min(ceiling_s * 2, self._cap_s)
        return max(self._rng() * ceiling_s, self._base_s / 10)

    def reset(self) -> None:
        self._ceiling_s = self._base_s


async def retry_transient(
    call: Callable[[], Awaitable[T]],
    *,
    is_transient: Callable[[BaseException], bool],
    give_up_after_s: float,
    backoff: Backoff,
    clock: Clock,
    on_retry: Callable[[BaseException, int], None] | None = None,
) -> T:
    """Repeat `call` while its error is transient and time is left; then its last error is raised as it is.

    The last wait is cut to end at the deadline, so there is one try at that moment. A try that is under
    way is never interrupted: bound it inside `call`. `on_retry` gets the error and the number of the
    failed try, from 1.
    """
    deadline = clock.monotonic() + give_up_after_s
    failed = 0
    while True:
        try:
            result = await call()
        except Exception as exc:
            left_s = deadline - clock.monotonic()
            if left_s <= 0 or not is_transient(exc):
                raise
            failed += 1
            if on_retry is not None:
                on_retry(exc, failed)
        else:
            backoff.reset()
            return result
        # Outside the handler: later errors are not chained to this one, however often it comes.
        await asyncio.sleep(min(backoff.next(), left_s))
