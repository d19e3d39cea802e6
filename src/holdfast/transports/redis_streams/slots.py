"""Which node of a Redis Cluster has which keys, as the cluster said when it was last asked."""

from __future__ import annotations

import asyncio
import binascii
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from holdfast.core.errors import ConfigError
from holdfast.transports.redis_streams.wire import Refusal, Unreachable, Untrusted, Wire

SLOTS = 16_384
#: Of each node that is asked which one has what.
_ANSWER_S = 0.5

Place = tuple[str, int]


class Range(NamedTuple):
    """Slots that one master has."""

    first: int
    last: int
    master: Place


def slot_of(key: str) -> int:
    """By the part in braces, if there is one, as Redis does."""
    _, brace, rest = key.partition("{")
    tag, end, _ = rest.partition("}")
    return binascii.crc_hqx((tag if brace and end and tag else key).encode(), 0) % SLOTS


class Slots:
    """Asked for anew whenever the transport comes back; in between, nodes say themselves what has moved."""

    def __init__(self, seeds: Sequence[Place], enter: Callable[[Place], Awaitable[Wire]]) -> None:
        self._seeds = tuple(seeds)
        self._enter = enter
        self._ranges: list[Range] = []
        self._moved: dict[int, Place] = {}

    def owner(self, slot: int) -> Place:
        """Unreachable: nobody has said."""
        if (moved := self._moved.get(slot)) is not None:
            return moved
        at = bisect_right(self._ranges, slot, key=lambda each: each.first) - 1
        if at < 0 or slot > self._ranges[at].last:
            raise Unreachable(f"the cluster has not said which node has slot {slot}")
        return self._ranges[at].master

    def moved(self, slot: int, place: Place) -> None:
        """A node says who has it."""
        self._moved[slot] = place

    def masters(self) -> dict[Place, Range]:
        """Each with some slots of its own."""
        return {each.master: each for each in self._ranges}

    async def look(self) -> None:
        """Ask nodes until one knows who has what. Unreachable: none does, or some slots have no master now."""
        heard = []
        untrusted: Untrusted | None = None
        for place in dict.fromkeys([*self.masters(), *self._seeds]):
            try:
                async with asyncio.timeout(_ANSWER_S):
                    ranges = await self._ask(place)
            except (Unreachable, Refusal, TimeoutError) as error:
                heard.append(f"{place[0]}:{place[1]}: {str(error) or 'no answer in time'}")
                untrusted = untrusted or (error if isinstance(error, Untrusted) else None)
                continue
            if (covered := sum(each.last - each.first + 1 for each in ranges)) < SLOTS:
                heard.append(f"{place[0]}:{place[1]}: {SLOTS - covered} slots have no master")
                continue
            self._ranges, self._moved = ranges, {}
            return
        raise untrusted or Unreachable(f"no node of the cluster says who has what: {'; '.join(heard)}")

    async def _ask(self, place: Place) -> list[Range]:
        wire = await self._enter(place)
        try:
            said = await wire.ask("CLUSTER", "SLOTS", within_s=_ANSWER_S)
        except Refusal as refusal:
            if "cluster support disabled" not in str(refusal):
                raise
            raise ConfigError(
                f"the Redis at {place[0]}:{place[1]} is no node of a cluster: write redis://{place[0]}:{place[1]}/0 in "
                "the setting redis"
            ) from None
        finally:
            wire.close()
        return sorted(_range(each, place) for each in said)


def _range(said: Any, asked: Place) -> Range:
    first, last, (host, port, *_), *_ = said
    # A node that does not know its own address leaves it out: it is where we have asked.
    name = host.decode() if host else ""
    return Range(first, last, (asked[0] if name in ("", "?") else name, port))
