"""What people do while the campaign goes on: they cancel and replay; and they enqueue what should not be enqueued."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.campaign.producer import Ledger
from tests.campaign.record import Glance
from tests.history import Answer, ClientRecorder

from holdfast import Holdfast, JobHandle, JobNotFound, StoreUnavailable


class Operators:
    """Every call is written down, as producers' are."""

    def __init__(self, hf: Holdfast, glance: Glance, client: ClientRecorder, rng: random.Random) -> None:
        self._hf = hf
        self._glance = glance
        self._client = client
        self.ledger = Ledger(client)
        self._rng = rng

    def actions(self) -> dict[str, Callable[[], Awaitable[None]]]:
        draw = self._rng.randrange
        return {
            "cancel jobs": self._cancel,
            "replay dead jobs": self._replay,
            # Two deaths among others, three alone: some become dead letters, most recover.
            "plant a job that crashes its process": lambda: self._plant("crashing", draw(1, 7), draw(3)),
            "plant a job that does not end": lambda: self._plant(
                self._rng.choice(("blocking", "swallowing", "sticking")), draw(1, 3)
            ),
            "plant a job that crashes its isolate": lambda: self._plant("isolated", draw(0, 3), draw(3)),
        }

    async def _plant(self, name: str, *arguments: int) -> None:
        async def ask() -> list[JobHandle[Any]]:
            return [await self._hf.named(f"hazards.{name}").enqueue(*arguments)]

        await self.ledger.call([(None, f"{name}{arguments}")], ask)

    async def _cancel(self) -> None:
        for table in ("active", "ready", "timer"):
            for job_id in self._glance.some(table, 2):
                self._client.cancel(job_id, answer=Answer.ASKED)
                try:
                    told = await self._hf.jobs.cancel(job_id, reason="the nemesis wants it")
                    self._client.cancel(job_id, answer=Answer.OK, told=told)
                except (JobNotFound, StoreUnavailable) as error:
                    self._client.cancel(job_id, answer=_refusal(error))

    async def _replay(self) -> None:
        for job_id in self._glance.some("dead", 5):
            await self._replay_one(job_id)

    async def _replay_one(self, job_id: UUID) -> None:
        self._client.replay(job_id, answer=Answer.ASKED)
        try:
            count = await self._hf.dead.replay(job_id)
            self._client.replay(job_id, answer=Answer.OK if count else Answer.FAIL)
        except StoreUnavailable as error:
            self._client.replay(job_id, answer=_refusal(error))


def _refusal(error: Exception) -> Answer:
    return Answer.UNKNOWN if isinstance(error, StoreUnavailable) and error.unknown else Answer.FAIL
