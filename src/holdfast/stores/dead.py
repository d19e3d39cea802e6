"""The part of the contract that dead letters are operated with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar, Protocol, Self

from holdfast.core.job import JobId
from holdfast.core.unique import Rekeyed


class Replayed(int):
    """How many dead jobs run again; a number that also knows who stays dead, because another job stands in the way."""

    in_the_way: Mapping[JobId, JobId]
    """Of each that stays dead: the job that has its unique key; of the first `MOST_NAMED` of them."""
    kept_back: int
    """How many these are in all."""

    MOST_NAMED: ClassVar[int] = 1000

    def __new__(cls, count: int = 0, in_the_way: Mapping[JobId, JobId] | None = None, kept_back: int = 0) -> Self:
        self = super().__new__(cls, count)
        found = in_the_way or {}
        self.in_the_way = dict(islice(found.items(), cls.MOST_NAMED))
        self.kept_back = kept_back or len(found)
        return self

    @classmethod
    def of(cls, parts: Sequence[Replayed]) -> Self:
        """Of all of these, which were parts of one replay."""
        found = {each: other for part in parts for each, other in part.in_the_way.items()}
        return cls(sum(parts), found, sum(part.kept_back for part in parts))


class DeadStore(Protocol):
    """The dead letters. Nothing leaves them but by a person's word."""

    async def replay_jobs(self, job_ids: Sequence[JobId]) -> Replayed:
        """`dead` → `ready` with a fresh budget, the same id and all history; those not dead are passed over.

        Those whose unique key belongs to another job, which stands in the way by the rule that the dead one was
        enqueued with, stay dead; of several with one key the first goes. Whoever goes has its key again, in the same
        transaction.
        """
        ...

    async def edit_dead(self, job_id: JobId, *, payload: bytes, rekeyed: Rekeyed | None = None) -> bool:
        """Replace the arguments of a dead job. False: it is not dead.

        `rekeyed`: if that was its unique key, it has the other one from its replay on, and gives the old one up now.
        """
        ...

    async def purge_dead(self, job_ids: Sequence[JobId]) -> int: ...
