"""What a soak looks at: processes that live all the time, and the server's own counts, past all of Holdfast's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.campaign.processes import memory_mb, open_files
from tests.campaign.record import Glance
from tests.campaign.trend import Tolerance

#: By the first word of a figure's name.
TOLERANCES = {
    "memory": Tolerance(absolute=15.0, share=0.1),
    "files": Tolerance(absolute=2.0),
    # A worker opens up to ten connections for transactions of runs, each when all others are in use, and keeps them.
    # With a steady load they are there when the first quarter is over: 16 → 15 → 15.5 sockets in ten minutes.
    "sockets": Tolerance(absolute=4.0),
    "connections": Tolerance(absolute=4.0),
    "table": Tolerance(absolute=4.0, share=0.25),
    "indexes": Tolerance(absolute=4.0, share=0.25),
    "claim": Tolerance(absolute=4.0, share=0.5),
}
_MB = 2.0**20
#: Users' own tables are theirs, and grow.
_SIZES = (
    "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname NOT LIKE 'campaign%%'"
)
_CONNECTIONS = (
    "SELECT count(*), count(*) FILTER (WHERE application_name = 'holdfast transaction') "
    "FROM pg_stat_activity WHERE application_name LIKE 'holdfast %%'"
)
_CLAIMED = (
    "SELECT s.n_tup_del, io.heap_blks_hit + io.heap_blks_read + coalesce(io.idx_blks_hit + io.idx_blks_read, 0) "
    "FROM pg_stat_user_tables s JOIN pg_statio_user_tables io USING (relid) "
    "WHERE s.schemaname = current_schema() AND s.relname = 'ready'"
)


def tolerance_of(name: str) -> Tolerance:
    """What this figure may gain."""
    return TOLERANCES[name.split()[0].rstrip(":")]


@dataclass(slots=True)
class Gauges:
    """Sampled at even distances; every figure is a series."""

    glance: Glance
    processes: Mapping[str, int]
    """By a name for their role."""
    series: dict[str, list[float]] = field(default_factory=dict)
    _last: tuple[int, int] = (0, 0)

    def sample(self) -> dict[str, float]:
        """Look once; what was seen."""
        seen: dict[str, float] = {}
        for name, pid in self.processes.items():
            seen[f"memory of the {name}, MB"] = memory_mb(pid)
            sockets, others = open_files(pid)
            seen[f"sockets of the {name}"], seen[f"files of the {name}"] = float(sockets), float(others)
        [(connections, for_transactions)] = self.glance.query(_CONNECTIONS)
        seen["connections but for transactions"] = float(connections - for_transactions)
        seen["connections for transactions"] = float(for_transactions)
        for table, heap, indexes in self.glance.query(_SIZES):
            seen[f"table {table}, MB"] = heap / _MB
            seen[f"indexes of {table}, MB"] = indexes / _MB
        if (cost := self._claim_cost()) is not None:
            seen["claim: pages of `ready` per job"] = cost
        for name, value in seen.items():
            self.series.setdefault(name, []).append(value)
        return seen

    def _claim_cost(self) -> float | None:
        """Pages touched per job that left `ready`, since the last look; a server that crashed has counted anew."""
        [now] = self.glance.query(_CLAIMED)
        before, self._last = self._last, now
        claimed, pages = now[0] - before[0], now[1] - before[1]
        return pages / claimed if claimed > 0 and pages >= 0 else None
