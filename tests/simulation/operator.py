"""Somebody who pauses tasks, narrows limits and touches breakers while the world lasts, and undoes all of it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.simulation.flow_tasks import BANK, PRINTER
from tests.simulation.scene import Scene

_PAUSED = ("printing", "posting", "quick")


class Operator:
    """Always reaches the store: what it says is what matters here, not how it gets there."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        rng = Random(scene.rng.getrandbits(64))
        acts = [
            (self._pause, self._resume),
            (self._narrow, self._widen),
            (self._open, self._close),
        ]
        for act, undo in acts:
            if rng.random() < 0.25:
                began_s, lasts_s = (rng.random() * 0.7 * scene.faults_last_s for _ in range(2))
                scene.world.after(began_s, lambda act=act: self._say(act))  # type: ignore[misc]
                scene.world.after(began_s + lasts_s, lambda undo=undo: self._say(undo))  # type: ignore[misc]
        self._task = rng.choice(_PAUSED)

    def _say(self, what: Callable[[], None]) -> None:
        server = self._scene.server
        server.tick()
        what()
        word = f"operator: {what.__name__.strip('_')}"
        self._scene.world.happened[word] += 1
        self._scene.world.say("operator", word)

    def _pause(self) -> None:
        self._scene.server.model.flow.set_paused(task=self._task, tenant=None, paused=True)

    def _resume(self) -> None:
        self._scene.server.model.flow.set_paused(task=self._task, tenant=None, paused=False)

    def _narrow(self) -> None:
        self._scene.narrowed = True
        self._scene.server.model.flow.set_limit(PRINTER, 1, None)

    def _widen(self) -> None:
        self._scene.server.model.flow.set_limit(PRINTER, None, None)

    def _open(self) -> None:
        self._scene.server.model.flow.set_breaker(BANK, closed=False)

    def _close(self) -> None:
        self._scene.server.model.flow.set_breaker(BANK, closed=True)
