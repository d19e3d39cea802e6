"""`make simulate`: many seeds, or one of them with everything that happens in it."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.many import Totals, run_many
from tests.simulation.nemesis import KINDS
from tests.simulation.run import simulate

_SHOWN = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many (default: %(default)s)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="replay this one and print what happens")
    parser.add_argument("--only", choices=KINDS, help="one kind of fault, again and again")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first seed that fails")
    options = parser.parse_args()
    if options.seed is not None:
        sys.exit(_replay(options.seed, options.only))
    sys.exit(_run(options))


def _replay(seed: int, only: str | None) -> int:
    outcome = simulate(seed, only=only, trace=print)
    print()
    print(outcome.report)
    for sentence in outcome.broken:
        print(f"BROKEN  {sentence}")
    return bool(outcome.broken)


def _run(options: argparse.Namespace) -> int:
    seeds = range(options.first, options.first + options.seeds)
    totals, began, shown = Totals(), time.monotonic(), 0.0
    for part in run_many(seeds, processes=options.jobs, only=options.only):
        totals.join(part)
        for seed, broken in part.broken.items():
            print(f"\rseed {seed}: {broken[0]}" + (f" (and {len(broken) - 1} more)" if broken[1:] else ""), flush=True)
        took_s = time.monotonic() - began
        if took_s - shown > 1.0:
            shown = took_s
            print(f"\r{totals.seeds:,} seeds, {totals.seeds / took_s * 60:,.0f} a minute", end="  ", flush=True)
        if totals.broken and not options.keep_going:
            break
    print("\r" + _summary(totals, time.monotonic() - began))
    return bool(totals.broken)


def _summary(totals: Totals, took_s: float) -> str:
    failed = sorted(totals.broken)[:_SHOWN]
    rate = totals.seeds / took_s * 60
    lines = [
        f"{totals.seeds:,} seeds in {took_s:,.0f} s ({rate:,.0f} a minute); {totals.virtual_s / 3600:,.0f} virtual h",
        f"{totals.jobs:,} jobs: {_counted(totals.states)}",
        f"{totals.runs:,} runs, extra: {_counted(totals.causes)}; in user code twice at once: {totals.overlaps:,}",
        f"happened: {_counted(totals.happened)}",
        f"longest way to rest: {totals.slowest_rest_s:.0f} s after the last fault, in seed {totals.slowest_rest_seed}",
        f"failed: {len(totals.broken):,}" + (f", as {', '.join(map(str, failed))}" if failed else ""),
    ]
    if failed:
        lines.append(f'replay one with: make simulate ARGS="--seed {failed[0]}", and with --only as in this run')
    return "\n".join(lines)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
