"""What becomes of a job whose process died without a word; runs that ended with an error are in `retry`.

One death of a process takes all the jobs that it was running, and mostly only one of them is the cause. So no
death among neighbours is held against a job: from its second loss on it runs alone, and only what then kills
its process is poison. Innocents are never dead-lettered.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from holdfast.core.cause import Cause

MAX_CRASHES: Final = 3
ALONE_FROM: Final = 2


class Losses(NamedTuple):
    """How often a job's process died while it ran (`losses`), and how often it must have been the cause."""

    losses: int = 0
    crashes: int = 0


def alone(losses: int) -> bool:
    """Whether a job that was lost this often runs in a process without neighbours."""
    return losses >= ALONE_FROM


def is_suspect(cause: Cause, token: int, suspects: Collection[int] | None) -> bool:
    """Whether a run may have been what killed its process: it had begun, and nothing else is known to have done it.

    None: nobody knows what ran when it died.
    """
    return cause is not Cause.HANDED_BACK and (suspects is None or token in suspects)


def after_loss(before: Losses, *, was_alone: bool) -> tuple[Losses, bool]:
    """The counts after one more loss, and whether the job is dead as poison.

    `was_alone` is also right when the job is known to be the culprit, whoever ran beside it.
    """
    after = Losses(before.losses + 1, before.crashes + (1 if was_alone else 0))
    return after, after.crashes >= MAX_CRASHES


def after_crash(before: Losses) -> tuple[Losses, bool]:
    """The same for a job that had its process to itself (`isolate=True`).

    It is the culprit, and nobody was hit beside it. So it need not run without neighbours from then on, and it is not
    counted among the losses, which lead there: a worker that runs a job alone does nothing else meanwhile.
    """
    after = Losses(before.losses, before.crashes + 1)
    return after, after.crashes >= MAX_CRASHES
