"""How often each of many may ask: a token bucket for each, in this process, of which only so many are kept."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from typing import Final

from holdfast.core.rate import Pace, next_token_at, spend, tokens

_LONGEST: Final = 64


def place_of(address: str) -> str:
    """What is counted as one address: of IPv6 the network, as every client has as many addresses there as he likes."""
    if ":" not in address:
        return address[:_LONGEST]
    try:
        found = ipaddress.IPv6Address(address)
    except ValueError:
        return address[:_LONGEST]
    return str(found.ipv4_mapped or ipaddress.IPv6Address(int(found) >> 64 << 64))


class Buckets:
    """One pace for all of them. Who was not seen for longest is forgotten first: his bucket is full again by then, or
    he is one of very many, whom a limit for each cannot hold back."""

    def __init__(self, pace: Pace, *, most: int = 10_000) -> None:
        self._pace = pace
        self._most = most
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, who: str, now: float) -> float | None:
        """None: he may go on. Else the seconds after which he may."""
        full_at = self._full_at.get(who)
        if tokens(full_at, now, self._pace) < 1:
            return next_token_at(full_at, now, self._pace) - now
        self._full_at[who] = spend(full_at, now, self._pace)
        self._full_at.move_to_end(who)
        if len(self._full_at) > self._most:
            self._full_at.popitem(last=False)
        return None

    def left(self, who: str, now: float) -> float | None:
        """The same question, without taking anything."""
        full_at = self._full_at.get(who)
        return None if tokens(full_at, now, self._pace) else next_token_at(full_at, now, self._pace) - now
