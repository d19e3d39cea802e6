"""Who changes something while everything runs: kept with the change in the store, and told as an event."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.outcome import storable
from holdfast.core.shown import shown
from holdfast.stores.base import Store
from holdfast.telemetry.flow_events import SettingChanged
from holdfast.telemetry.hub import Telemetry

_LONGEST: Final = 200


class Operator:
    """What every noun needs that changes settings."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self.store = store
        self._telemetry = telemetry

    def named(self, by: str) -> str:
        """Whoever was named, or else whoever runs this process."""
        if not isinstance(by, str):
            raise InvalidOptions(f"by={shown(by)}: needs a text that says who it was")
        return storable(by, _LONGEST) if by else whoami()

    def tell(self, what: str, which: str, said: str, by: str) -> None:
        """The change is in the store."""
        self._telemetry.emit(SettingChanged(what, which, said, by))


def whoami() -> str:
    """`user@host:pid`."""
    return f"{os_user()}@{socket.gethostname()}:{os.getpid()}"


def os_user() -> str:
    """Whoever runs this process, as far as there is a name for it, which in a container there may not be."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
