"""The safeguards of the rule about gates that all stores ask, and of what they share around it."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

GATES, RATE, BREAKER = (f"src/holdfast/core/{name}.py" for name in ("gates", "rate", "breaker"))
RULE = ("tests/unit/core/test_gates.py", "tests/unit/core/test_gates_under_any_sequence.py")


def _on_sqlite(topic: str) -> tuple[str, ...]:
    return ("tests/contract/test_sqlite.py", "-k", f"memory and ({topic})")


OF_GATES = (
    Ablation(
        "I10",
        "no more than its size hold slots of a limit",
        GATES,
        "            if usage.held.get(place, 0) >= gate.size:",
        "            if usage.held.get(place, 0) > gate.size:",
        RULE,
    ),
    Ablation(
        "I10",
        "whoever passes is counted before the next one of the same claim is judged",
        GATES,
        "        usage.held[place] = usage.held.get(place, 0) + 1",
        "        pass",
        RULE,
    ),
    Ablation(
        "I10",
        "a token is spent by whoever passes",
        GATES,
        "        usage.full_at[gate.key] = spend(usage.full_at.get(gate.key), usage.now, gate.pace)",
        "        usage.full_at[gate.key] = usage.now",
        RULE,
    ),
    Ablation(
        "gates",
        "the same gate twice is one run through it",
        GATES,
        "        if place in seen:",
        "        if False:",
        RULE,
    ),
    Ablation(
        "gates",
        "a breaker that is half open lets a single probe through",
        GATES,
        "            if usage.held.get(place, 0):\n                return Waits(place)",
        "            if False:\n                return Waits(place)",
        RULE,
    ),
    Ablation(
        "gates",
        "a quicker pace does not pay for a slower one",
        GATES,
        "usage.full_at[gate.key] = full_at = no_emptier(full_at, usage.now, gate.pace)",
        "usage.full_at[gate.key] = full_at",
        (*RULE, *_on_sqlite("rates")),
    ),
    Ablation(
        "gates",
        "after a rest no more than the burst begin at once",
        RATE,
        "    return min(pace.burst, max(0, math.floor(pace.burst - (missing_s - _TINY_S) / pace.gap_s)))",
        "    return max(0, math.floor(2 * pace.burst - (missing_s - _TINY_S) / pace.gap_s))",
        ("tests/unit/core/test_rate.py",),
    ),
    Ablation(
        "gates",
        "failures outside its window do not open a breaker",
        BREAKER,
        "for at in state.recent if now - breaker.window_s < at <= now",
        "for at in state.recent",
        ("tests/unit/core/test_breaker.py",),
    ),
    Ablation(
        "gates",
        "what ends while a breaker is open says nothing about it",
        BREAKER,
        "    return CLOSED if state.phase(now) is Phase.HALF_OPEN else state",
        "    return CLOSED if state.open_until is not None else state",
        ("tests/unit/core/test_breaker.py",),
    ),
    Ablation(
        "P2",
        "what a run says about its breaker counts only if its settlement does",
        "src/holdfast/stores/settling.py",
        "        if verdict is Verdict.APPLIED or (verdict is Verdict.ALREADY and isinstance(each, Succeed))",
        "        if True",
        _on_sqlite("breakers"),
    ),
    Ablation(
        "unique",
        "a replay puts no job beside another that has its unique key",
        "src/holdfast/stores/judging.py",
        "            if _counts(holder, job.claim, now):\n                in_the_way",
        "            if False:\n                in_the_way",
        _on_sqlite("unique_replays"),
    ),
    Ablation(
        "unique",
        "a replayed job has its unique key again",
        "src/holdfast/stores/judging.py",
        "                taking[key] = job\n",
        "                pass\n",
        _on_sqlite("unique_replays"),
    ),
    Ablation(
        "unique",
        "a call that is refused by its unique key takes no idempotency key",
        "src/holdfast/stores/judging.py",
        " if existing else Taken(before.job_id)\n                continue",
        " if existing else Taken(before.job_id)",
        _on_sqlite("unique"),
    ),
    Ablation(
        "unique",
        "who has begun and waits for another run is not put off",
        "src/holdfast/stores/judging.py",
        "(holder.has_run and claim.counts_first_waits_only)",
        "False",
        _on_sqlite("unique"),
    ),
    Ablation(
        "I10",
        "the judge sees limits beside a job's first gate",
        "tests/history/gates.py",
        "        for gate in record.gates:\n            if not isinstance(gate, SlotGate)",
        "        for gate in record.gates[:1]:\n            if not isinstance(gate, SlotGate)",
        ("tests/history/test_checker.py",),
    ),
    Ablation(
        "gates",
        "a breaker that is half open hears only of runs that began since then",
        BREAKER,
        "state.open_until is not None and now - mark.ran_s < state.open_until",
        "False",
        ("tests/attacks/test_old_news_of_breakers.py",),
    ),
    Ablation(
        "gates",
        "a run whose news of a breaker is late is older by then",
        "src/holdfast/worker/settler.py",
        "ran_s=mark.ran_s + now_s - at_s",
        "ran_s=mark.ran_s + 0 * (now_s - at_s)",
        ("tests/unit/worker/test_settler.py",),
    ),
    Ablation(
        "gates",
        "nobody stumbles over a job whose gates cannot be read",
        "src/holdfast/core/gates_text.py",
        "    with contextlib.suppress(ValueError, TypeError, RecursionError):",
        "    with contextlib.suppress():",
        ("tests/attacks/test_spoilt_gates.py",),
    ),
    Ablation(
        "gates",
        "SQLite: the sweep does not stumble over it either",
        "src/holdfast/stores/sqlite/sql/serve.sql",
        "json_each(CASE WHEN json_valid(j.gates) THEN j.gates ELSE '[]' END) e",
        "json_each(j.gates) e",
        ("tests/attacks/test_spoilt_gates.py",),
    ),
)
