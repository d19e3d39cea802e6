"""`make bench`: every scenario several times, alternating with the baselines, and one table at the end."""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections import defaultdict
from collections.abc import Callable

from bench import baseline, peer, scenarios


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default 3)")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs per measurement (default 20,000)")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this")
    options = parser.parse_args()
    jobs = options.jobs

    measures: dict[str, tuple[str, Callable[[], object]]] = {
        "baseline: insert in bulk": ("/s", lambda: baseline.insert_in_bulk(jobs)),
        "enqueue in bulk": ("/s", lambda: asyncio.run(scenarios.enqueue_in_bulk(jobs))),
        "enqueue, 100 callers": ("/s", lambda: asyncio.run(scenarios.enqueue_concurrently(jobs))),
        "enqueue, one by one": ("/s", lambda: asyncio.run(scenarios.enqueue_one_by_one(jobs // 20))),
        "baseline: claim and settle": ("/s", lambda: baseline.claim_and_settle(jobs)),
        "drain, one worker": ("/s", lambda: asyncio.run(scenarios.drain(jobs))),
        "peer: Huey on SQLite, drain": ("/s", lambda: peer.huey_drain(jobs // 10)),
        "pickup in process, p50 p99": ("ms", lambda: asyncio.run(scenarios.pickup_here(500))),
        "pickup from another process, p50 p99": ("ms", lambda: asyncio.run(scenarios.pickup_elsewhere(200))),
        "idle worker: memory, CPU": ("MB %", lambda: asyncio.run(scenarios.idle_worker(5.0))),
    }
    results: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for round_number in range(1, options.rounds + 1):
        for name, (unit, measure) in measures.items():
            if options.only not in name:
                continue
            figures = measure()
            if figures is None:
                print(f"round {round_number}  {name:<40} not available here")
                continue
            results[name].append(figures if isinstance(figures, tuple) else (figures,))
            print(f"round {round_number}  {name:<40} {_show(results[name][-1])} {unit}", flush=True)
    print("\nmedian of the rounds (machines are noisy: compare only what was taken in the same run)")
    for name, rounds in results.items():
        medians = tuple(statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"  {name:<40} {_show(medians)} {measures[name][0]}")
    _ratio(results, "enqueue in bulk", "baseline: insert in bulk")
    _ratio(results, "drain, one worker", "baseline: claim and settle")
    _ratio(results, "drain, one worker", "peer: Huey on SQLite, drain")


def _show(figures: tuple[float, ...]) -> str:
    return "  ".join(f"{figure:>10,.0f}" if figure >= 1000 else f"{figure:>10.2f}" for figure in figures)


def _ratio(results: dict[str, list[tuple[float, ...]]], ours: str, theirs: str) -> None:
    if ours in results and theirs in results:
        ratios = [one[0] / other[0] for one, other in zip(results[ours], results[theirs], strict=False)]
        print(f"  {ours} / {theirs}: {statistics.median(ratios):.2f}")


main()
