"""What a soak samples: processes, and the server's own counts."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from tests.campaign.gauges import Gauges, tolerance_of
from tests.campaign.record import PostgresGlance
from tests.postgres.fixtures import PostgresSchema

from holdfast import Holdfast


class Counted(PostgresGlance):
    """A server that says what it is told to say of `ready`."""

    def __init__(self) -> None:
        super().__init__("", "")
        self.counts_of_ready = (0, 0)

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        if "n_tup_del" in statement:
            return [self.counts_of_ready]
        return [(3, 1)] if "pg_stat_activity" in statement else [("ready", 2**20, 2**21)]


def test_every_figure_is_a_series_with_a_tolerance(postgres_schema: PostgresSchema) -> None:
    """On tables that nobody has ever used: what the server counts comes late, also after the test that did it."""
    asyncio.run(Holdfast(postgres_schema.url, schema=postgres_schema.schema).migrate())
    gauges = Gauges(PostgresGlance(postgres_schema.url, postgres_schema.schema), {"worker": os.getpid()})
    for _ in range(2):
        seen = gauges.sample()
    assert seen["memory of the worker, MB"] > 1.0
    assert seen["files of the worker"] >= 3.0
    assert seen["sockets of the worker"] >= 1.0, "that to the server"
    assert {"table ready, MB", "indexes of ready, MB", "table job, MB"} <= seen.keys()
    assert {"connections but for transactions", "connections for transactions"} <= seen.keys()
    assert all(len(values) == 2 for values in gauges.series.values())
    assert not any(name.startswith("claim") for name in gauges.series), "nothing was claimed"
    assert all(tolerance_of(name).absolute for name in gauges.series)


def test_a_claim_costs_the_pages_that_were_touched_since_the_last_look() -> None:
    glance = Counted()
    gauges = Gauges(glance, {})
    name = "claim: pages of `ready` per job"
    assert name not in gauges.sample()  # nothing was claimed
    glance.counts_of_ready = (100, 900)
    assert gauges.sample()[name] == 9.0
    glance.counts_of_ready = (10, 50)
    assert name not in gauges.sample(), "the server has crashed and counts anew"
    glance.counts_of_ready = (20, 150)
    assert gauges.sample()[name] == 10.0
    assert gauges.series[name] == [9.0, 10.0]
    assert gauges.series["indexes of ready, MB"] == [2.0] * 4
