"""`make bench`: every scenario several times, alternating with the baselines, and one table at the end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

from bench import (
    baseline,
    http_load,
    peer,
    pgqueuer_peer,
    postgres_claims,
    postgres_library,
    postgres_loop,
    postgres_server,
    redis_calls,
    scenarios,
    supervised,
)
from bench.race import Cost, Figures
from holdfast.local import LocalPostgres, LocalRedis

#: What a measurement is called, the unit of its figures, how it is taken; None where it cannot be taken here.
Measures: TypeAlias = dict[str, tuple[str, Callable[[], object]]]

_COSTS = "/s, client µs, server µs, WAL bytes"
_SHARES = "/s, worker µs, other processes' µs"
#: Tasks of the measurements of limits, by what they are called there.
_LIMITED = {
    "none": "noop",
    "a key for each job": "distinct",
    "1,000 keys of 100": "shared",
    "three keys of 5,000": "hot",
}
_RATIOS = [
    ("enqueue in bulk", "baseline: insert in bulk"),
    ("drain, one worker", "baseline: claim and settle"),
    ("drain, one worker", "peer: Huey on SQLite, drain"),
    ("postgres: enqueue in bulk", "postgres baseline: insert in bulk"),
    *(
        (f"{store} gates: {what}, {keys}", f"{store} gates: {what}, none")
        for store in ("sqlite", "postgres")
        for what in ("enqueue", "drain")
        for keys in _LIMITED
        if keys != "none"
    ),
    ("postgres: drain, under a supervisor", "postgres: drain, the same without one"),
    ("postgres: drain, one worker", "postgres baseline: drain, one process"),
    ("postgres: drain, two workers", "postgres baseline: drain, two processes"),
    ("postgres: drain, one worker", "postgres peer: PgQueuer, one process"),
    ("postgres: drain, two workers", "postgres peer: PgQueuer, two processes"),
    ("postgres baseline: drain, one process", "postgres peer: PgQueuer, one process"),
    ("postgres baseline: drain, two processes", "postgres peer: PgQueuer, two processes"),
    ("http: submit, 64 connections", "http baseline: an empty handler"),
]


def sqlite_measures(jobs: int) -> Measures:
    """The embedded store."""
    return {
        "baseline: insert in bulk": ("/s", lambda: baseline.insert_in_bulk(jobs)),
        "enqueue in bulk": ("/s", lambda: asyncio.run(scenarios.enqueue_in_bulk(jobs))),
        "enqueue, 100 callers": ("/s", lambda: asyncio.run(scenarios.enqueue_concurrently(jobs))),
        "enqueue, one by one": ("/s", lambda: asyncio.run(scenarios.enqueue_one_by_one(jobs // 20))),
        "baseline: claim and settle": ("/s", lambda: baseline.claim_and_settle(jobs)),
        "drain, one worker": ("/s", lambda: asyncio.run(scenarios.drain(jobs))),
        **{
            f"sqlite gates: {what}, {limited}": (
                "/s",
                lambda scenario=scenario, task=task: asyncio.run(scenario(jobs, task)),  # type: ignore[misc]  # defaults bind the loop
            )
            for what, scenario in (("enqueue", scenarios.enqueue_in_bulk), ("drain", scenarios.drain))
            for limited, task in _LIMITED.items()
        },
        "peer: Huey on SQLite, drain": ("/s", lambda: peer.huey_drain(jobs // 10)),
        "pickup in process, p50 p99": ("ms", lambda: asyncio.run(scenarios.pickup_here(500))),
        "pickup from another process, p50 p99": ("ms", lambda: asyncio.run(scenarios.pickup_elsewhere(200))),
        "idle worker: memory, CPU": ("MB %", lambda: asyncio.run(scenarios.idle_worker(5.0))),
    }


def redis_measures(jobs: int, server: LocalPostgres, redis: LocalRedis) -> Measures:
    """The same PostgreSQL with and without a Redis beside it, one after the other."""

    def library(scenario: str, processes: int, url: str) -> Figures:
        fresh = postgres_server.fresh_database(server)

        def cost() -> Cost:
            return postgres_server.cost(server)

        return postgres_library.measure(fresh, scenario, jobs, processes=processes, cost=cost, redis=url)

    def pair(name: str, scenario: str, processes: int = 1) -> Measures:
        return {
            f"redis: {name}": (_COSTS, lambda: library(scenario, processes, redis.url)),
            f"redis: {name}, without it": (_COSTS, lambda: library(scenario, processes, "")),
        }

    measures: Measures = {}
    for name, pickup in (("one process", postgres_library.pickup), ("two", postgres_library.pickup_elsewhere)):
        for said, url in (("", redis.url), (", without it", "")):
            measures[f"redis: pickup in {name}, p50 p99{said}"] = (
                "ms",
                lambda pickup=pickup, url=url: pickup(postgres_server.fresh_database(server), 300, redis=url),  # type: ignore[misc]
            )
    measures |= pair("enqueue in bulk", "bulk") | pair("enqueue, 100 callers", "callers")
    for processes, name in ((1, "one worker"), (2, "two workers"), (4, "four workers")):
        measures |= pair(f"drain, {name}", "drain", processes)
    for batch in (1000, 100, 1):
        measures[f"redis: publish and fetch a job, {batch} at once"] = (
            "µs of client CPU",
            lambda batch=batch: redis_calls.per_job(redis.url, batch),  # type: ignore[misc]
        )
    return measures


def postgres_measures(jobs: int, server: LocalPostgres, *, peer_python: str) -> Measures:
    """The system of record; each measurement has a database of its own."""

    def fresh() -> str:
        return postgres_server.fresh_database(server)

    def cost() -> Cost:
        return postgres_server.cost(server)

    def loop(processes: int) -> Figures:
        return postgres_loop.claim_and_settle(fresh(), jobs, processes=processes, cost=cost)

    def pgqueuer(processes: int) -> Figures | None:
        return pgqueuer_peer.drain(fresh(), jobs // 2, processes=processes, cost=cost, python=peer_python)

    def library(scenario: str, processes: int = 1, task: str = "noop") -> Figures:
        return postgres_library.measure(fresh(), scenario, jobs, processes=processes, task=task, cost=cost)

    return {
        "postgres: enqueue in bulk": (_COSTS, lambda: library("bulk")),
        "postgres: enqueue, 100 callers": (_COSTS, lambda: library("callers")),
        "postgres: drain, one worker": (_COSTS, lambda: library("drain")),
        "postgres: drain, two workers": (_COSTS, lambda: library("drain", 2)),
        "postgres: drain, under a supervisor": (
            _SHARES,
            lambda: supervised.drain(fresh(), 4 * jobs, supervised.SUPERVISED),
        ),
        "postgres: drain, the same without one": (
            _SHARES,
            lambda: supervised.drain(fresh(), 4 * jobs, supervised.ALONE),
        ),
        "postgres: idle supervisor, its processes": ("% of a core", lambda: supervised.idle(fresh())),
        **{
            f"postgres gates: {what}, {limited}": (
                _COSTS,
                lambda scenario=scenario, task=task: library(scenario, task=task),  # type: ignore[misc]  # defaults bind the loop
            )
            for what, scenario in (("enqueue", "bulk"), ("drain", "drain"))
            for limited, task in _LIMITED.items()
        },
        "postgres: pickup, p50 p99": ("ms", lambda: postgres_library.pickup(fresh(), 300)),
        "postgres: claim of 50, 1,000 and 1,000,000 waiting": (
            "µs of server CPU, times",
            lambda: postgres_claims.compare(fresh(), fresh()),
        ),
        "postgres baseline: insert in bulk": (
            _COSTS,
            lambda: postgres_loop.insert_in_bulk(fresh(), jobs, cost=cost),
        ),
        "postgres baseline: drain, one process": (_COSTS, lambda: loop(1)),
        "postgres peer: PgQueuer, one process": (_COSTS, lambda: pgqueuer(1)),
        "postgres baseline: drain, two processes": (_COSTS, lambda: loop(2)),
        "postgres peer: PgQueuer, two processes": (_COSTS, lambda: pgqueuer(2)),
    }


def http_measures(jobs: int, server: LocalPostgres) -> Measures:
    """The API on PostgreSQL, through a real server, and the same framework with a handler that does nothing."""
    return {
        "http: submit, 64 connections": (
            "/s, ms p50, ms p99",
            lambda: http_load.submissions(postgres_server.fresh_database(server), jobs),
        ),
        "http baseline: an empty handler": ("/s, ms p50, ms p99", lambda: http_load.submissions(None, jobs)),
        "http: 500 clients that follow jobs": (
            "MB before, during, after",
            lambda: http_load.followers(postgres_server.fresh_database(server)),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default 3)")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs per measurement (default 20,000)")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this")
    parser.add_argument(
        "--store", choices=["sqlite", "postgres", "redis", "http"], help="only this one's (default: all)"
    )
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has pgqueuer (default: this one)")
    options = parser.parse_args()
    with contextlib.ExitStack() as cleanup:
        measures: Measures = {}
        if options.store in (None, "sqlite"):
            measures |= sqlite_measures(options.jobs)
        if options.store != "sqlite":
            server = cleanup.enter_context(postgres_server.running())
        if options.store in (None, "postgres"):
            measures |= postgres_measures(options.jobs, server, peer_python=options.peer_python)
        if options.store in (None, "redis"):
            place = tempfile.mkdtemp(prefix="holdfast-bench-")
            redis = cleanup.enter_context(LocalRedis(place, temporary=True))
            redis.ask("CONFIG", "SET", "appendonly", "no")  # as docs/redis.md advises
            measures |= redis_measures(options.jobs, server, redis)
        if options.store in (None, "http"):
            measures |= http_measures(options.jobs, server)
        report(measures, rounds=options.rounds, only=options.only)


def report(measures: Measures, *, rounds: int, only: str) -> None:
    """Alternating, so that a noisy minute hits all of them alike."""
    results: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for round_number in range(1, rounds + 1):
        for name, (unit, measure) in measures.items():
            if only not in name:
                continue
            figures = measure()
            if figures is None:
                print(f"round {round_number}  {name:<40} not available here")
                continue
            results[name].append(figures if isinstance(figures, tuple) else (figures,))
            print(f"round {round_number}  {name:<40} {_show(results[name][-1])} {unit}", flush=True)
    print("\nmedian of the rounds (machines are noisy: compare only what was taken in the same run)")
    for name, taken in results.items():
        medians = tuple(statistics.median(column) for column in zip(*taken, strict=True))
        print(f"  {name:<40} {_show(medians)} {measures[name][0]}")
    for ours, theirs in _RATIOS:
        _ratio(results, ours, theirs)


def _show(figures: tuple[float, ...]) -> str:
    return "  ".join(f"{figure:>10,.0f}" if figure >= 1000 else f"{figure:>10.2f}" for figure in figures)


def _ratio(results: dict[str, list[tuple[float, ...]]], ours: str, theirs: str) -> None:
    if ours in results and theirs in results:
        ratios = [one[0] / other[0] for one, other in zip(results[ours], results[theirs], strict=False)]
        print(f"  {ours} / {theirs}: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
