"""The whole table, and the part of it that every run of the tests plays."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.faults.table import environment, failpoints, files, redis, servers
from tests.faults.table.cells import SQLITE, Cell

SEED = 6


def table() -> list[Cell]:
    announcing = (redis.cells, redis.cluster_cells)
    parts = (failpoints.cells, failpoints.named_moments, servers.cells, *announcing, files.cells, environment.cells)
    cells = [cell for part in parts for cell in part()]
    names = [cell.name for cell in cells]
    assert len(names) == len(set(names)), f"twice: {sorted(name for name in names if names.count(name) > 1)}"
    return cells


def covering(cells: Iterable[Cell], *, seed: int = SEED) -> list[Cell]:
    """Few and quick cells in which every moment occurs, and every fault on every store, of those that have a scene.

    Greedily: in an order that the seed decides, the cell that shows most per second of what no other has shown.
    """
    left = [cell for cell in cells if cell.scene and not cell.system]
    random.Random(seed).shuffle(left)
    wanted = {feature for cell in left for feature in _features(cell)}
    chosen: list[Cell] = []
    while wanted:
        best = max(left, key=lambda cell: len(wanted & _features(cell)) / _cost_s(cell))
        chosen.append(best)
        wanted -= _features(best)
    return sorted(chosen, key=lambda cell: cell.name)


def _features(cell: Cell) -> set[tuple[str, ...]]:
    return {("moment", cell.part, cell.moment), ("fault", cell.part, cell.fault, cell.store)}


def _cost_s(cell: Cell) -> float:
    """About so long a cell takes: some wait for a lease to run out, a server takes longer than a file."""
    waits = {"hang": 3.0, "stop": 2.0, "kill9": 1.5, "fail_over": 3.0}.get(cell.strike, 1.0)
    return waits + (0.0 if cell.store == SQLITE else 0.7)
