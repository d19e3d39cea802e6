"""No transport at all: workers hear of work by the store's own hints, and look by themselves now and then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from holdfast.core.announcement import Announcement
from holdfast.core.fairness import Lane
from holdfast.transports.base import NOTHING, Entry, Reading, Upkeep


class StoreAlone:
    """Never up, and so never in anybody's way; its own consumer."""

    is_up = False

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def publish(self, announcements: Sequence[Announcement]) -> bool:
        return False

    def tell_news(self, queue: str) -> None:
        pass

    async def tend(self, queues: Collection[str]) -> Upkeep:
        return Upkeep()

    async def fill(self, queue: str, announcements: Sequence[Announcement]) -> None:
        pass

    def arrived(self) -> list[Entry]:
        return []

    async def read(self, quotas: Mapping[Lane, int]) -> Reading:
        return NOTHING

    def ack(self, entries: Collection[Entry]) -> None:
        pass

    def hand_on(self, entries: Collection[Entry]) -> None:
        pass

    def listen(self, lanes: Collection[Lane], *, most: int) -> None:
        pass

    def consumer(
        self, name: str, *, wake: Callable[[], None], on_news: Callable[[], None] = lambda: None
    ) -> StoreAlone:
        return self
