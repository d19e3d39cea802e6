"""What the supervisor costs: the same jobs drained by `holdfast worker`, and by the same worker in one plain process.

`python -m bench.supervised` starts both, gives them jobs in turns of a second or so, each pair of turns in the other
order than the last one, and compares the medians: what disturbs one is likely to disturb the other, and single turns do
not count. Machines are noisy, so the CPU time of each process stands beside the rate; it hardly depends on what else
runs.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable

from bench import postgres_server
from bench.contender import ALONE, SUPERVISED, Contender, Drain, come_to_rest, cpu_s
from bench.scenarios import fresh_file

_IDLE_FOR_S = 5.0


def drain(url: str, jobs: int, command: list[str]) -> Drain:
    """One turn, by a worker of its own."""
    with Contender(url, command) as contender:
        return contender.drain(jobs)


def idle(url: str) -> tuple[float, float]:
    """Percent of a core of the supervisor and of its processes (two and a spare), while there is nothing to do."""
    with Contender(url, SUPERVISED, "--processes", "2", processes=4) as contender, contender.awake():
        pids = come_to_rest(contender.pids[0], processes=4)
        before = [cpu_s(pid) for pid in pids]
        time.sleep(_IDLE_FOR_S)
        used = [cpu_s(pid) - start for pid, start in zip(pids, before, strict=True)]
        return 100 * used[0] / _IDLE_FOR_S, 100 * sum(used[1:]) / _IDLE_FOR_S


def compare(fresh_url: Callable[[], str], *, jobs: int, pairs: int) -> None:
    """Print every turn, the medians of both, and their ratios."""
    with Contender(fresh_url(), ALONE) as alone, Contender(fresh_url(), SUPERVISED) as supervised:
        contenders = {"alone": alone, "supervised": supervised}
        taken: dict[str, list[Drain]] = {name: [] for name in contenders}
        for contender in contenders.values():
            contender.drain(jobs)  # what is imported, compiled and cached once
        for number in range(pairs):
            for name in sorted(contenders, reverse=bool(number % 2)):
                taken[name].append(contenders[name].drain(jobs))
                print(f"  pair {number + 1:>2}  {name:<10} {_shown(taken[name][-1])}", flush=True)
    one, other = (_median(taken[name]) for name in ("alone", "supervised"))
    rates = sorted(
        mine.jobs_per_s / theirs.jobs_per_s for mine, theirs in zip(taken["supervised"], taken["alone"], strict=True)
    )
    print(f"  median   alone      {_shown(one)}")
    print(f"  median   supervised {_shown(other)}")
    print(
        f"  ratio of the rates {other.jobs_per_s / one.jobs_per_s:.3f} (of pairs: {rates[0]:.2f} to {rates[-1]:.2f}, "
        f"median {statistics.median(rates):.3f}), of the CPU in the worker {one.worker_us / other.worker_us:.3f}, "
        f"of the CPU in all {one.worker_us / (other.worker_us + other.others_us):.3f}"
    )


def _median(taken: list[Drain]) -> Drain:
    return Drain(*map(statistics.median, zip(*taken, strict=True)))


def _shown(one: Drain) -> str:
    return f"{one.jobs_per_s:>8,.0f}/s  {one.worker_us:>6.2f} µs in the worker, {one.others_us:>5.2f} µs in others"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.supervised", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="how many turns each has (default 20)")
    parser.add_argument("--jobs", type=int, default=40_000, help="jobs per turn (default 40,000)")
    parser.add_argument("--store", choices=["sqlite", "postgres"], help="only this store (default: both)")
    options = parser.parse_args()
    with contextlib.ExitStack() as cleanup:
        if options.store != "postgres":
            print("SQLite")
            compare(lambda: cleanup.enter_context(fresh_file()), jobs=options.jobs, pairs=options.pairs)
        if options.store != "sqlite":
            server = cleanup.enter_context(postgres_server.running())
            print("PostgreSQL")
            compare(lambda: postgres_server.fresh_database(server), jobs=options.jobs, pairs=options.pairs)


if __name__ == "__main__":
    main()
