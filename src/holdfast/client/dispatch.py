"""A transport and the store that it serves, as workers and upkeep are given them; without one, the store alone."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.stores.dispatch import DispatchStore
from holdfast.transports.base import Transport
from holdfast.transports.store_alone import StoreAlone


class Dispatch(NamedTuple):
    """How ready jobs come to workers."""

    transport: Transport
    store: DispatchStore | None
    """None: the transport never has an entry, so nothing is ever claimed by one."""


STORE_ALONE = Dispatch(StoreAlone(), None)
