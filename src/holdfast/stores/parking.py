"""The part of the contract about parked jobs, as far as workers lift what they were parked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.core.fairness import Lane
from holdfast.core.job import WorkerId

if TYPE_CHECKING:
    from holdfast.stores.base import Claim


BEHIND: Final = 1 << 62
"""Added to the `seq` of a parked job whose lane comes last (weight 0) once it was met in the line of a gate: so far it
stands behind all others there. Without it, it is the job's place in its lane again."""

LATE_S: Final = 5.0
"""Whoever may have gone on from a gate for so long was left behind. For less, whoever promotes, once a second at least,
was about to come: quick rates have somebody whose time has just come at any moment."""


class ParkingStore(Protocol):
    """Jobs of a task that some worker did not know belong to those who know it."""

    async def unpark_jobs(self, *, reason: str, keys: Sequence[str]) -> int:
        """Lift a reason: parked jobs under these keys become ready."""
        ...

    async def claim_parked(
        self, worker: WorkerId, lanes: Collection[Lane], *, tasks: Sequence[str], deadline_s: float
    ) -> Claim:
        """Lease the oldest job of these lanes and tasks that is parked because somebody did not know its task.

        One at a time, none that must run alone, otherwise as `claim_jobs`; where none is parked, a lost lease may go
        unnoticed. It does not become ready on the way: whoever does not know it cannot have it again. Only the first
        few of each task need be looked at.
        """
        ...
