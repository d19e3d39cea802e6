"""The part of the contract about flow control: who waits at which gate, what operators say about it, and who said what.

Who may pass is decided by `core.gates.admit`. In the claim's transaction a store looks at every job that has gates,
or that rules concern (`Rules.concern_everybody`, `concern_queue`): whoever passes takes its slots (`slot`) and spends
its tokens; whoever does not is parked under `Waits.at`, with its place in the queue. Whatever ends, hands back or
schedules a run frees its slots. What frees a slot, closes or half-opens a breaker, earns a token or lifts a rule makes
the gate due; `serve_gates` looks after gates that are due and have waiters. Parked jobs count into the depth of their
queue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from holdfast.core.breaker import NO_FIGURES, BreakerFigures, BreakerState, Phase
from holdfast.core.gates import Gate, Place, Rules
from holdfast.core.job import JobId
from holdfast.core.rate import Pace
from holdfast.stores.api_keys import ApiKeyStore
from holdfast.stores.routes import RouteStore


class Served(NamedTuple):
    """Waiters that were let go from gates that were due."""

    unparked: int
    moved: int
    """Those who now wait at another gate."""
    next_due_in_s: float | None
    """None: no gate with waiters is due by itself."""


class GateInfo(NamedTuple):
    """One gate that is in use: somebody runs through it, or waits at it."""

    place: Place
    held: int
    """Slots taken; of a rate, turns that are kept for jobs that were let go."""
    waiting: int
    """Jobs parked here, counted so far as reports count."""
    full_at: float | None = None
    """Of a rate: when its bucket will be full again, in epoch seconds."""


class BreakerInfo(NamedTuple):
    """A breaker that has failed, or that an operator has touched."""

    name: str
    state: BreakerState
    phase: Phase
    waiting: int
    figures: BreakerFigures = NO_FIGURES
    """How it counts, as far as that is known: a store knows what operators say, `hf.breakers` the code of its app."""
    said_by: str = ""
    """Who says that: `operator`, where any of it is his word, `code`, or nobody who is known here."""


class Position(NamedTuple):
    """Where a job stands in its lane."""

    ahead: int
    """Ready jobs before it; counted so far as reports count."""
    entered_at: datetime


class Lately(NamedTuple):
    """Runs that have ended lately, as far as they have left a job that succeeded or died.

    The newest of them are looked at, so that it is bounded work: where there were more, they speak of a shorter time.
    Who was cancelled is not among them, since most of those have never run.
    """

    over_s: float = 60.0
    """The time that this is about."""
    of_lane: int = 0
    """Of the queue and the priority of the job in question."""
    of_limit: int = 0
    """Of the limit that it is parked at: each of them gave back a slot there."""
    stirred: int = 0
    """Runs of any queue that have begun or ended within the last `STILL_S`."""


NOTHING_LATELY: Final = Lately()


class Circumstances(NamedTuple):
    """What a report about one waiting job needs beside its `JobInfo`."""

    gates: tuple[Gate, ...] = ()
    """Its own."""
    waits_for: tuple[JobId, ...] = ()
    """Of a blocked job: those that have not ended, up to `MOST_NAMED`."""
    alone: bool = False
    """Whether it has to run alone."""
    holds: frozenset[Place] = frozenset()
    """Slots that it has: of one that is ready, those that are kept for its turn."""
    line_ahead: int = 0
    """Of a parked job: those of its lane who wait where it does and come first, counted so far as reports count."""
    line_beside: int = 0
    """Of a parked job: those of other lanes who wait there and take turns with its own, counted so far as reports
    count."""
    lately: Lately = NOTHING_LATELY
    """What has ended lately."""


LATELY_S: Final = 60.0
MOST_ENDED: Final = 2_000
"""So many of the newest endings does a report look at."""
STILL_S: Final = 5.0
"""Where nothing has begun or ended for so long, whatever is free has been free all the while."""
MOST_NAMED: Final = 20


class SettingChange(NamedTuple):
    """Who changed what, when: on record for as long as the store is."""

    number: int
    at: datetime
    by: str
    what: str
    """As in `queue`, `tenant`, `limit`, `pause`, `breaker`, `route`."""
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class FlowStore(ApiKeyStore, RouteStore, Protocol):
    """What flow control needs of a store; where jobs go; and the keys of those who operate it from elsewhere."""

    async def rules(self) -> Rules:
        """What operators have said about limits, rates and pauses."""
        ...

    async def set_limit(
        self, name: str, *, size: int | None, pace: Pace | None, by: str, only: Collection[str] | None = None
    ) -> tuple[int | None, Pace | None]:
        """The whole of what operators say about a limit: its size, its pace; both None: nothing any more.

        `only`: of `size` and `pace` those that are said here; the other stays, whoever changes it meanwhile. Answers
        with what holds from now on."""
        ...

    async def set_paused(self, *, task: str | None = None, tenant: str | None = None, paused: bool, by: str) -> None:
        """Nothing more of this task, or of this tenant, is started; or it is again."""
        ...

    async def breakers(self) -> list[BreakerInfo]: ...

    async def set_breaker(self, name: str, *, closed: bool, by: str) -> None:
        """Close a breaker, as if it had never failed; or hold it open until somebody closes it."""
        ...

    async def set_breaker_figures(
        self, name: str, figures: BreakerFigures, *, by: str, only: Collection[str] | None = None
    ) -> BreakerFigures:
        """The whole of what operators say of how a breaker counts, from the next run on that says anything of it.

        It goes before the figures of marks, each by itself. `only`: those that are said here; the others stay, whoever
        changes them meanwhile. Answers with what holds from now on."""
        ...

    async def gates(self, places: Sequence[Place] | None = None, *, limit: int = 500) -> list[GateInfo]:
        """The gates in use among these; None: any, up to a limit."""
        ...

    async def serve_gates(self, *, limit: int) -> Served:
        """Let go of up to `limit` waiters of gates that are due, the oldest of each gate first."""
        ...

    async def position(self, job_id: JobId) -> Position | None:
        """None: it is not ready."""
        ...

    async def circumstances(self, job_id: JobId) -> Circumstances | None:
        """None: there is no such job."""
        ...

    async def move_jobs(self, job_ids: Sequence[JobId], *, queue: str | None, priority: int | None) -> int:
        """Give those of these jobs that wait another queue or priority; ready ones go to the tail there, in order.

        Those that are there already keep their places and are not counted: a repeated call is the same as one."""
        ...

    async def setting_changes(self, *, limit: int, before: int | None = None) -> list[SettingChange]:
        """Newest first; `before` is the number of the last one of the page before."""
        ...
