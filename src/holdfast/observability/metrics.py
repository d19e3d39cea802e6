"""The metrics of one app in one process: counted from its events, and read from its store when they are asked for."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterator
from typing import Any, Final

import holdfast
from holdfast.app import Holdfast
from holdfast.observability import catalogue as c
from holdfast.observability.cluster import Away, Cluster
from holdfast.observability.counting import Counting
from holdfast.observability.exposition import check_installed, families, text_of
from holdfast.observability.gauges import cluster_series
from holdfast.observability.tally import Series, Tally
from holdfast.observability.views import transport_is_up, view_of

_LOOK_EVERY_S: Final = 0.5


class Metrics:
    """Counts from when it is made. `text()` answers a scrape; it can be registered with a registry of your own, too."""

    def __init__(self, hf: Holdfast, *, tally: Tally | None = None) -> None:
        check_installed()  # not at the first scrape: whoever wants metrics is told at once what is missing
        app = weakref.ref(hf)
        self._app = app
        self._tally = tally or Tally()
        self._counting = Counting(self._tally, known_task=lambda name: _knows(app(), name))
        self._detach = self._counting.attach(hf.telemetry)
        for queue in sorted({task.options.queue for task in hf.tasks} | hf.config.served.keys()):
            self._counting.queues(queue)
        self.view = view_of(hf)
        self._seen: Cluster | Away | None = None
        self._watched: asyncio.AbstractEventLoop | None = None

    async def text(self) -> str:
        """What a scrape gets; also while the store is away, and says so then."""
        self.watch_loop()
        self._note_transport()
        self._seen = await self.view.look()
        return text_of(self.series())

    def series(self) -> Iterator[Series]:
        """Everything as it stands; of the cluster what was seen last."""
        yield Series(c.INFO, (holdfast.__version__,), (1.0,))
        yield from self._tally.read()
        yield from cluster_series(self._seen, self._counting.queues)

    def collect(self) -> Iterator[Any]:
        """For `prometheus_client.REGISTRY.register(metrics)`: the same, without asking the store."""
        return families(self.series())

    def stop(self) -> None:
        """Count nothing more."""
        self._detach()
        self._watched = None

    def watch_loop(self) -> None:
        """Look twice a second how late the running event loop is, until it closes or `stop`."""
        loop = asyncio.get_running_loop()
        if self._watched is not loop:
            self._watched = loop
            loop.call_later(_LOOK_EVERY_S, self._look, loop, loop.time() + _LOOK_EVERY_S)

    def _note_transport(self) -> None:
        is_up = transport_is_up(self._app())
        if is_up is not None:
            self._tally.put(self._tally.series(c.TRANSPORT_UP), float(is_up))

    def _look(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        if self._watched is not loop:
            return
        now_s = loop.time()
        self._counting.lag(max(0.0, now_s - due_s))
        self._note_transport()
        loop.call_later(_LOOK_EVERY_S, self._look, loop, now_s + _LOOK_EVERY_S)


def _knows(app: Holdfast | None, task: str) -> bool:
    return app is not None and app.tasks.get(task) is not None


_made: weakref.WeakKeyDictionary[Holdfast, Metrics] = weakref.WeakKeyDictionary()


def metrics_of(hf: Holdfast) -> Metrics:
    """The metrics of an app, which are counted from the first time that they are asked for."""
    found = _made.get(hf)
    if found is None:
        found = _made[hf] = Metrics(hf)
    return found


async def metrics_text(hf: Holdfast) -> str:
    """What a scrape of this process gets, in Prometheus' text format (`CONTENT_TYPE`)."""
    return await metrics_of(hf).text()
