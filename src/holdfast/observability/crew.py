"""The metrics and health of a supervisor's processes, summed up: one port, however many come and go under it.

Each process counts into the margin of its board. What one has counted stays in the sum when it has ended, so that no
counter ever falls; what it was, it is no longer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import holdfast
from holdfast.app.backends import status_of
from holdfast.config import Config
from holdfast.core.urls import parse_listen
from holdfast.observability import catalogue as c
from holdfast.observability.cluster import Away, Cluster, ClusterView
from holdfast.observability.counting import MOST_QUEUES, Counting
from holdfast.observability.exposition import text_of
from holdfast.observability.gauges import cluster_series
from holdfast.observability.health import Check, Examiner, Readiness, failed, ok
from holdfast.observability.listener import Listener
from holdfast.observability.merging import Merged
from holdfast.observability.naming import Names
from holdfast.observability.routes import watching_routes
from holdfast.observability.tally import Series, Tally, read_margin
from holdfast.stores.base import Store
from holdfast.stores.status import StoreStatus
from holdfast.telemetry.hub import Telemetry
from holdfast.worker.supervision.child import Child, Role
from holdfast.worker.supervision.recovery import Recovery


class CrewWatch:
    """Serves from when the first process has said by its settings that, and where, it should."""

    def __init__(self, children: Callable[[], Sequence[Child]], *, recovery: Recovery, telemetry: Telemetry) -> None:
        self._children = children
        self._recovery = recovery
        self._telemetry = telemetry
        self._own = Tally()
        self._gone = Merged()
        self._queues = Names(MOST_QUEUES)
        self._config: Config | None = None
        self._listener: Listener | None = None
        self._view = ClusterView(self._store)
        self._examiner = Examiner(self._view, status=self._status, transport=self._transport)

    def take(self, config: Config) -> None:
        """A process's settings; those of the first decide where to listen, the latest which store to look at."""
        self._config = config
        if self._listener is None and config.metrics_listen:
            Counting(self._own, known_task=lambda name: False).attach(self._telemetry)
            host, port = parse_listen(config.metrics_listen)
            self._listener = Listener(watching_routes(self.text, self.readiness), host=host, port=port)
            self._listener.start()

    def bury(self, child: Child) -> None:
        """A process has ended; what it counted stays."""
        if self._listener is None:
            return
        counted = (each for each in read_margin(child.board.read_margin()) if each.metric.kind is not c.Kind.GAUGE)
        self._gone.take(counted)

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()

    async def text(self) -> str:
        """What a scrape gets."""
        return text_of(self._series(await self._view.look()))

    async def readiness(self) -> Readiness:
        """As an app's, and whether any process here is at work."""
        found = await self._examiner.examine()
        return Readiness({**found.checks, "processes": self._processes()}, found.queues)

    def _processes(self) -> Check:
        working = sum(child.board.worker().worker is not None for child in self._children())
        return ok(f"{working} at work") if working else failed("no worker process is at work")

    def _series(self, seen: Cluster | Away) -> Iterator[Series]:
        yield Series(c.INFO, (holdfast.__version__,), (1.0,))
        counted = Merged(self._own.read())
        counted.take(self._gone)
        for child in self._children():
            counted.take(read_margin(child.board.read_margin()))
        yield from counted
        yield from self._staff()
        yield from cluster_series(seen, self._queues)

    def _staff(self) -> Iterator[Series]:
        """What the boards themselves say."""
        roles = Counter(child.role for child in self._children())
        for role in Role:
            yield Series(c.PROCESSES, (role.name.lower(),), (roles[role],))
        boards = [(child, child.board.worker()) for child in self._children() if child.role is not Role.SPARE]
        slots = sum(1 if child.role is Role.SOLITARY else _concurrency(child) for child, seen in boards if seen.worker)
        yield Series(c.SLOTS, (), (slots,))
        yield Series(c.TAKEN, (), (sum(seen.taken for _, seen in boards),))
        yield Series(c.LAG_NOW, (), (max((seen.lag_s for _, seen in boards), default=0.0),))

    def _transport(self) -> bool | None:
        said = [
            each.values[0]
            for child in self._children()
            for each in read_margin(child.board.read_margin())
            if each.metric is c.TRANSPORT_UP
        ]
        return None if not said else bool(min(said))

    async def _store(self) -> Store:
        assert self._config is not None
        return await asyncio.shield(self._recovery.open(self._config))

    async def _status(self) -> StoreStatus:
        assert self._config is not None
        return await status_of(self._config)


def _concurrency(child: Child) -> int:
    return 0 if child.config is None else child.config.concurrency
