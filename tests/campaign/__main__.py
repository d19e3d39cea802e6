"""`python -m tests.campaign`: the long form, with a line every second and the judgement at the end.

`python -m tests.campaign table …` plays every cell of the table of faults instead (`python -m tests.faults`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.campaign import recovery
from tests.campaign.campaign import Outcome, Plan, run_campaign
from tests.campaign.faults import KINDS, parse_faults
from tests.campaign.reporting import write_report
from tests.faults import __main__ as faults
from tests.postgres.shared import DURABLE, chosen_binaries, make_logins_cheap, own_directory

from holdfast.local import LocalPostgres, LocalRedis


def main(words: Sequence[str]) -> int:
    if words[:1] == ["table"]:
        return faults.main(words[1:])
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2_000, help="how many jobs at least")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--redis", action="store_true", help="with --store postgres: a Redis beside it, struck as well")
    parser.add_argument("--minutes", type=float, help="how long to strike at least; the same as --seconds")
    parser.add_argument("--seconds", type=float, help="how long to strike at least; as the jobs need by default")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000), help="of the nemesis")
    parser.add_argument("--faults", type=_faults, default=frozenset(KINDS), metavar="KIND,…", help=", ".join(KINDS))
    parser.add_argument("--workers", type=int, default=2, help="plain ones, without a supervisor")
    parser.add_argument("--supervisors", type=int, default=1, help="each with two processes and a spare")
    parser.add_argument("--producers", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.4, help="seconds between two strikes, on average")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for all to come to rest at the end")
    parser.add_argument("--report", type=Path, metavar="DIR", help="where to; the campaign's directory by default")
    parser.add_argument("--lease", type=float, default=1.5, help="seconds")
    parser.add_argument(
        "--recovery", type=int, metavar="N", help="only measure: N kills of a process under a supervisor"
    )
    parser.add_argument("--keep", action="store_true", help="keep the files of a sound campaign, too")
    given = parser.parse_args(words)
    if given.recovery:
        return _measure_recovery(given.recovery, given.store)
    plan = Plan(
        seed=given.seed,
        jobs=given.jobs,
        seconds=given.seconds or 60 * (given.minutes or 0) or max(15.0, given.jobs / 200),
        workers=given.workers,
        supervisors=given.supervisors,
        producers=given.producers,
        lease_s=given.lease,
        pause_s=given.pause,
        quiet_within_s=given.patience,
        faults=given.faults,
    )
    directory = Path(tempfile.mkdtemp(prefix="holdfast-campaign-"))
    print(f"seed {plan.seed}\n{plan}\nfiles in {directory}", flush=True)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_server()) if given.store == "postgres" else None
        if server is not None:
            make_logins_cheap(server)
        redis = stack.enter_context(LocalRedis(own_directory(), temporary=True)) if given.redis else None
        outcome = asyncio.run(_run(plan, directory, server, redis))
    print(outcome)
    written = write_report(outcome, given.report or directory, command=_repeatable(given.seed))
    print("report in", " and ".join(map(str, written)))
    print("SOUND" if outcome.sound else f"BROKEN: repeat it with --seed {plan.seed}; files in {directory}")
    if outcome.sound and given.report and not given.keep:
        shutil.rmtree(directory)
    return 0 if outcome.sound else 1


async def _run(plan: Plan, directory: Path, server: LocalPostgres | None, redis: LocalRedis | None) -> Outcome:
    """SIGINT and SIGTERM break it off: what has happened until then is judged."""
    broken_off = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, broken_off.set)
    say = lambda line: print(line, flush=True)  # noqa: E731
    return await run_campaign(plan, directory, say=say, server=server, redis=redis, broken_off=broken_off.is_set)


def _repeatable(seed: int) -> str:
    """What to say to have the same again, on whichever machine."""
    words = [word for word in sys.argv[1:] if word != "--keep"]
    if "--report" in words:
        at = words.index("--report")
        del words[at : at + 2]
    return shlex.join(words if "--seed" in words else [*words, "--seed", str(seed)])


def _faults(text: str) -> frozenset[str]:
    try:
        return parse_faults(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _measure_recovery(kills: int, store: str) -> int:
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-recovery-")))
        server = stack.enter_context(_server()) if store == "postgres" else None
        settings = {"url": f"sqlite:///{place / 'jobs.db'}" if server is None else server.url}
        measured = asyncio.run(recovery.measure(kills, place, settings, say=lambda line: print(line, flush=True)))
    print(recovery.report(*measured))
    return 0


def _server() -> LocalPostgres:
    """Its own, which writes through to the disk."""
    return LocalPostgres(own_directory(), settings=DURABLE, binaries=chosen_binaries(), temporary=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
