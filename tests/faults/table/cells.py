"""What a cell of the table is: a fault, its moment, the store; and who plays it, or why nobody does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SQLITE, POSTGRES = "sqlite", "postgres"
STORES = (SQLITE, POSTGRES)
#: PostgreSQL with a Redis beside it.
REDIS = "redis"


class Strike(StrEnum):
    """What can be done to a process at a failpoint, in the words of `runtime/failpoints`."""

    FAIL = "fail"
    HANG = "hang"
    KILL = "kill9"
    STOP = "stop"


#: The name of what happens where `fail` strikes, by the moment of the verb.
FAILURES = {"begin": "fail before", "inside": "fail inside", "committed": "execute, then fail"}
SAID = {Strike.HANG: "hang", Strike.KILL: "kill -9", Strike.STOP: "SIGSTOP past the lease"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of the table. Exactly one of `scene`, `test` and `reason` is there."""

    part: str
    """Of the table: who is struck."""
    moment: str
    fault: str
    store: str
    holds: str
    """What must hold."""
    scene: str = ""
    """The name of what plays it, in `scenes`."""
    strike: str = ""
    """What that needs to know."""
    test: str = ""
    """A test elsewhere that plays it: `path::name`."""
    reason: str = ""
    """Why it is not meaningful, or that its subject is not built yet."""
    system: bool = False
    """It needs more than Python: root, strace …"""

    def __post_init__(self) -> None:
        given = [bool(self.scene), bool(self.test), bool(self.reason)]
        assert sum(given) == 1, f"{self.name}: a scene, a test or a reason, and one of them only"

    @property
    def name(self) -> str:
        return f"{self.store}/{self.moment}/{self.fault}".replace(" ", "-")


def fault_at(moment: str, strike: Strike) -> str:
    """How the strike is called at this failpoint."""
    if strike is Strike.FAIL:
        return FAILURES.get(moment.rpartition(".")[2], "fail")
    return SAID[strike]
