"""`hf.limits`: what concurrency limits and rates there are, who holds and waits at them, and other sizes for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, TypeVar

from holdfast.client.gating import Declared, names_of_gates
from holdfast.client.operator import Operator
from holdfast.core.errors import InvalidOptions
from holdfast.core.gates import Barrier, RateGate, Rules
from holdfast.core.limit_options import Limit, Rate, check_size
from holdfast.core.names import check_limit_name, check_name
from holdfast.core.rate import Pace, next_token_at, parse_pace
from holdfast.core.state import State
from holdfast.core.task import Registry
from holdfast.stores.base import JobFilter
from holdfast.stores.flow import GateInfo

Kind = Literal["concurrency", "rate"]
_KINDS: Final[dict[Barrier, Kind]] = {Barrier.LIMIT: "concurrency", Barrier.RATE: "rate"}
_LOOKED_AT: Final = 100
_WHOLES: Final[tuple[Literal["task", "queue"], ...]] = ("task", "queue")


@dataclass(frozen=True, slots=True)
class LimitInfo:
    """One limit, or one key of it, and who is there now."""

    name: str
    """What it is called: its own name, or `task:` or `queue:` and the name of that."""
    kind: Kind
    """How many run at once, or how many begin in a time."""
    key: str | None
    """The name, a slash and the key; the name where it has no keys; None where no key of it is in use."""
    size: int | None
    """How many may run at once; None of a rate, and where only code says it that is not known here."""
    rate: str | None
    """At which pace runs begin, as in `100/m`; None of a limit, and where only code says it."""
    burst: int | None
    """Runs that may begin at once after a rest."""
    held: int
    """How many run."""
    waiting: int
    """How many wait, counted so far as reports count."""
    said_by: str
    """Who says how much: `operator`, `code`, or nobody who is known here."""
    next_at: datetime | None = None
    """Of a rate that is used up: when the next run may begin."""
    in_force: bool = True
    """False: an operator has set it, and what the code of this app calls so is of the other kind."""


class Limits:
    """Limits come with the jobs that have them; what is set here goes before what the code of any process says."""

    def __init__(self, operator: Operator, registry: Registry) -> None:
        self._operator = operator
        self._store = operator.store
        self._registry = registry

    async def list(self) -> list[LimitInfo]:
        """Those that are in use, set here, or declared by tasks of this app; by name and key."""
        rules, gates, now = await self._store.rules(), await self._store.gates(), await self._store.now()
        described = _Described(self.declared(), rules, now)
        found = [described.in_use(gate) for gate in gates if gate.place.barrier in _KINDS]
        seen = {(info.kind, info.name) for info in found}
        found += [info for info in described.others() if (info.kind, info.name) not in seen]
        return sorted(found, key=lambda info: (info.name, info.kind, info.key or ""))

    def declared(self) -> Declared:
        """What tasks of this app say, by name."""
        return names_of_gates([(task.name, task.options) for task in self._registry])

    async def set(
        self, name: str, *, size: int | None = None, rate: str | None = None, burst: int | None = None, by: str = ""
    ) -> None:
        """Another size, or another pace (`rate="100/m"`, `burst=`), for all keys of a limit, from now on.

        `task:NAME` and `queue:NAME` are for all of a task or queue, also where no code limits it. What is left out
        stays as it is, also the burst where only a pace is given: as it was set here before, or else as tasks of this
        app say, or jobs that wait there. Where none does, it is what one unit of time of the new pace allows. A pace
        for what tasks of this app declare as a `Limit`, and a size for a `Rate`, are refused: they would hold for
        nothing.

        `by` says who it was; it is the user of this process otherwise.
        """
        check_limit_name(name)
        if size is None and rate is None:
            raise InvalidOptions(f"limit {name!r}: nothing was given; give size= or rate=, or clear it")
        if burst is not None and rate is None:
            raise InvalidOptions(f"limit {name!r}: burst={burst!r:.40} belongs to a rate; give rate=, too")
        if size is not None:
            check_size(f"limit {name!r}: size", size)
        if rate is not None and burst is None:
            burst = await self.burst_of(name)
        pace = None if rate is None else parse_pace(rate, burst=burst)
        self._refuse_other_kind(name, size, pace)
        who = self._operator.named(by)
        given = [part for part, value in (("size", size), ("pace", pace)) if value is not None]
        size, pace = await self._store.set_limit(name, size=size, pace=pace, by=who, only=given)
        said = [] if size is None else [f"{size} at once"]
        said += [] if pace is None else [f"{pace}, burst {pace.burst}"]
        self._operator.tell("limit", name, " and ".join(said), who)

    def _refuse_other_kind(self, name: str, size: int | None, pace: Pace | None) -> None:
        kinds = kinds_of(name, self.declared())
        if size is not None and "concurrency" not in kinds:
            raise InvalidOptions(f"{name!r} is a rate: give rate=, and no size=")
        if pace is not None and "rate" not in kinds:
            raise InvalidOptions(f"{name!r} is a concurrency limit: give size=, and no rate=")

    async def burst_of(self, name: str) -> int | None:
        """How many may begin at once under a rate after a rest, as it holds now; None: that is not known here."""
        said = (await self._store.rules()).paces.get(name)
        if said is not None:
            return said.burst
        declared = [rate.parsed.burst for of, rate in _only(self.declared(), Rate) if of == name]
        return min(declared) if declared else await self._burst_of_waiters(name)

    async def _burst_of_waiters(self, name: str) -> int | None:
        """As the code said when they were enqueued, of whom the newest are looked at."""
        where = JobFilter(state=State.PARKED, reason=Barrier.RATE)
        for job in await self._store.list_jobs(where, limit=_LOOKED_AT):
            if job.waits_at is not None and job.waits_at.partition("/")[0] == name:
                found = await self._store.circumstances(job.id)
                for gate in () if found is None else found.gates:
                    if isinstance(gate, RateGate) and gate.key == job.waits_at:
                        return gate.pace.burst
        return None

    async def clear(self, name: str, *, by: str = "") -> bool:
        """What the code says holds again; False: nothing was set."""
        check_name("limit", name)
        who = self._operator.named(by)
        rules = await self._store.rules()
        was_set = name in rules.sizes or name in rules.paces
        await self._store.set_limit(name, size=None, pace=None, by=who)  # also where what is there counts as not set
        if not was_set:
            return False
        self._operator.tell("limit", name, "as the code says", who)
        return True


class _Described:
    """Gates by the names of their limits, with what is said of these."""

    def __init__(self, declared: Declared, rules: Rules, now: float) -> None:
        self._sizes = {name: each.size for name, each in _only(declared, Limit)}
        self._paces = {name: each.parsed for name, each in _only(declared, Rate)}
        self._keyed = {
            (kind, name)
            for kind, of in (("concurrency", Limit), ("rate", Rate))
            for name, gates in declared.items()
            if any(isinstance(each, of) and each.key is not None for each in gates)
        }
        self._declared = declared
        self._rules = rules
        self._now = now
        self._names = sorted({*declared, *rules.sizes, *rules.paces})

    def in_use(self, gate: GateInfo) -> LimitInfo:
        kind, key = _KINDS[gate.place.barrier], gate.place.key
        # A name has no slash: what is behind the first one is the key.
        held = gate.held if kind == "concurrency" else 0  # of a rate these are turns, of jobs that do not run yet
        return self._info(kind, key.partition("/")[0], key, held, gate.waiting, gate.full_at)

    def others(self) -> Iterable[LimitInfo]:
        for name in self._names:
            if name in self._sizes or name in self._rules.sizes:
                yield self._unused("concurrency", name)
            if name in self._paces or name in self._rules.paces:
                yield self._unused("rate", name)

    def _unused(self, kind: Kind, name: str) -> LimitInfo:
        info = self._info(kind, name, None if (kind, name) in self._keyed else name, 0, 0, None)
        return replace(info, in_force=kind in kinds_of(name, self._declared))

    def _info(
        self, kind: Kind, name: str, key: str | None, held: int, waiting: int, full_at: float | None
    ) -> LimitInfo:
        ruled, coded = (self._rules.sizes, self._sizes) if kind == "concurrency" else (self._rules.paces, self._paces)
        said: int | Pace | None = ruled.get(name, coded.get(name))
        by = "operator" if name in ruled else "code" if name in coded else ""
        pace = said if isinstance(said, Pace) else None
        size = None if isinstance(said, Pace) else said
        next_s = self._now if pace is None else next_token_at(full_at, self._now, pace)
        return LimitInfo(
            name, kind, key, size, None if pace is None else str(pace), None if pace is None else pace.burst,
            held, waiting, by, datetime.fromtimestamp(next_s, UTC) if next_s > self._now else None,
        )  # fmt: skip


def kinds_of(name: str, declared: Declared) -> Collection[Kind]:
    """What can be set by this name, as far as the code of this app tells; of a whole task or queue it is both."""
    if name not in declared or any(name.startswith(f"{kind}:") for kind in _WHOLES):
        return _KINDS.values()
    return {"concurrency" if isinstance(each, Limit) else "rate" for each in declared[name]}


T = TypeVar("T", Limit, Rate)


def _only(declared: Declared, kind: type[T]) -> list[tuple[str, T]]:
    return [(name, each) for name, gates in declared.items() for each in gates if isinstance(each, kind)]
