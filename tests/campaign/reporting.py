"""The report of a campaign: the same figures as Markdown for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.campaign.child import ROOT
from tests.campaign.plan import Outcome

_ROWS = 20


def write_report(outcome: Outcome, directory: Path, *, command: str) -> list[Path]:
    """Both files, named after the day, the store and the size."""
    directory.mkdir(parents=True, exist_ok=True)
    figures = collect(outcome, command=command)
    jobs = outcome.report.jobs
    size = f"{jobs // 1_000_000}m" if jobs >= 1_000_000 else f"{jobs // 1_000}k"
    name = f"{figures['date'][:10]}-{outcome.store}-{size}"
    as_json, as_markdown = directory / f"{name}.json", directory / f"{name}.md"
    as_json.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", "utf-8")
    as_markdown.write_text("\n".join(_lines(figures)) + "\n", "utf-8")
    return [as_markdown, as_json]


def collect(outcome: Outcome, *, command: str) -> dict[str, Any]:
    """Every figure, as JSON takes it."""
    report = outcome.report
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": outcome.plan.seed,
        "command": command,
        "commit": _git("rev-parse", "HEAD") + (" with changes" if _git("status", "--porcelain", "src") else ""),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("holdfast", "asyncpg")}},
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "arch": platform.machine()},
        "store": outcome.store,
        "sound": outcome.sound,
        "jobs": report.jobs,
        "states": dict(report.states),
        "runs": report.runs,
        "lost": report.lost,
        "unexplained_duplicates": report.unexplained_duplicates,
        "stale_writes_accepted": report.stale_writes_accepted,
        "violations": [str(violation) for violation in report.violations],
        "incidents": outcome.incidents,
        "overlapping_runs": report.overlapping_runs,
        "torn_lines": report.torn_lines,
        "extra_runs_by_cause": dict(report.extra_runs),
        "causes_on_record": outcome.causes,
        "kills": outcome.kills,
        "workers_killed": outcome.killed_workers,
        "deaths": {how: count for how, count in outcome.deaths.items() if how != "workers killed"},
        "faults_by_kind": dict(outcome.strikes_by_kind),
        "strikes": dict(outcome.strikes),
        "answers_lost_on_the_way": outcome.network_losses,
        "pickups_with_redis": outcome.pickups,
        "recovery_s": {how: _quantiles(seconds) for how, seconds in outcome.recovered_s.items()},
        "seconds_under_fire": round(outcome.fight_s, 1),
        "seconds": round(outcome.seconds, 1),
        "jobs_per_second": round(report.jobs / outcome.fight_s) if outcome.fight_s else None,
        "samples": [asdict(sample) for sample in outcome.samples],
    }


def _lines(f: dict[str, Any]) -> Iterator[str]:
    store = "PostgreSQL" if f["store"] == "postgres" else "SQLite"
    store += " with Redis" if f["pickups_with_redis"] else ""
    yield f"# Campaign of {f['date'][:10]}: {f['jobs']:,} jobs on {store}"
    yield ""
    verdict = "Sound: no promise was broken." if f["sound"] else "**Not sound**: see the violations and incidents."
    yield f'{verdict} Repeat it with `make campaign ARGS="{f["command"]}"` (seed {f["seed"]}).'
    yield ""
    yield from _table(
        ("figure", "value"),
        [
            ("jobs", f"{f['jobs']:,}"),
            ("lost", f["lost"]),
            ("unexplained duplicate runs", f["unexplained_duplicates"]),
            ("stale writes accepted", f["stale_writes_accepted"]),
            ("violations of any promise", len(f["violations"])),
            ("incidents (processes, logs, files)", len(f["incidents"])),
            ("runs of user code", f"{f['runs']:,}"),
            ("runs of one job that overlapped in user code", f["overlapping_runs"]),
            ("processes killed with SIGKILL", f"{f['kills']:,}"),
            ("strikes in all", f"{sum(f['strikes'].values()):,}"),
            ("answers lost or held on the way", f["answers_lost_on_the_way"]),
            ("seconds under fire", f["seconds_under_fire"]),
            ("jobs per second under fire", f["jobs_per_second"]),
        ],
    )
    yield from _section("Violations and incidents", [*f["violations"], *f["incidents"]])
    yield from _counts("How jobs ended", "state", f["states"])
    yield from _counts("Extra runs by cause", "cause", f["extra_runs_by_cause"])
    yield from _counts("Faults by kind", "kind", f["faults_by_kind"])
    yield from _counts("Every strike", "strike", f["strikes"])
    yield from _counts("How processes ended", "end", f["deaths"])
    if f["pickups_with_redis"]:
        yield from (
            "## Outages of Redis",
            "",
            f"Urgent jobs waited for their first run: {f['pickups_with_redis']}.",
            "",
        )
    yield "## Recovery"
    yield ""
    yield "Seconds from a kill to the first run of one of the jobs of the killed process."
    yield ""
    rows = [(how, q["kills"], q["p50"], q["p99"], q["max"]) for how, q in sorted(f["recovery_s"].items())]
    yield from _table(("killed", "kills", "p50", "p99", "max"), rows)
    yield "## Over time"
    yield ""
    yield "Memory is that of the largest process of each role, in MB."
    yield ""
    yield from _over_time(f["samples"])
    yield "## Where"
    yield ""
    machine = f["machine"]
    yield f"{f['date']}, commit `{f['commit']}`, {machine['cores']} cores ({machine['system']}, {machine['arch']}),"
    yield ", ".join(f"{name} {number}" for name, number in f["versions"].items()) + "."


def _over_time(samples: Sequence[dict[str, Any]]) -> Iterator[str]:
    step = max(1, len(samples) // _ROWS)
    chosen = samples[::step]
    roles = list(chosen[0]["memory_mb"]) if chosen else []
    rows = []
    for before, now in zip([None, *chosen], chosen, strict=False):
        passed_s = now["at_s"] - (before["at_s"] if before else 0.0)
        rate = (now["ended"] - (before["ended"] if before else 0)) / passed_s if passed_s else 0.0
        memory = [f"{now['memory_mb'][role]:.0f}" for role in roles]
        rows.append((f"{now['at_s']:.0f}", f"{now['ended']:,}", f"{rate:,.0f}", now["strikes"], *memory))
    yield from _table(("s", "ended", "jobs/s", "strikes", *roles), rows)


def _counts(title: str, name: str, counts: dict[str, int]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield from _table((name, "count"), [(key, f"{count:,}") for key, count in sorted(counts.items())])


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from (f"## {title}", "", *(f"- {item}" for item in items), "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join(['---', *['--:'] * (len(heads) - 1)])}|"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [seconds[0]] * 99
    return {
        "kills": len(seconds),
        "p50": round(cuts[49], 3),
        "p99": round(cuts[98], 3),
        "max": round(max(seconds), 3),
    }


def _git(*words: str) -> str:
    told = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip()
