"""Safeguards of flow control on users' side: options, runs and breakers, refusals, reports; each with its tests."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

LIMITS = "tests/integration/test_limits.py"
BREAKERS = "tests/integration/test_breakers.py"

OF_USERS = (
    Ablation(
        "P1",
        "a refusal after a try without an answer is not told as certain",
        "src/holdfast/client/enqueuer.py",
        "                self._doubts.unanswered(jobs)\n",
        "",
        ("tests/unit/client/test_enqueuer.py",),
    ),
    Ablation(
        "limits",
        "a queue's limits hold beside those of its tasks",
        "src/holdfast/core/defaults.py",
        'name=each.name or f"queue:{queue}") for each in _first((), of_queue.limits)',
        'name=each.name or f"queue:{queue}") for each in ()',
        ("tests/unit/core/test_limit_options.py", LIMITS),
    ),
    Ablation(
        "limits",
        "a key that is too long is told from others by its digest",
        "src/holdfast/client/gating.py",
        "        if len(text) > _LONGEST_KEY or",
        "        if",
        (LIMITS,),
    ),
    Ablation(
        "limits",
        "what operators leave out of a limit stays as it is",
        "src/holdfast/stores/sqlite/rules.py",
        """pace = pace if "pace" in only else known.paces.get(name)""",
        "pass",
        (LIMITS,),
    ),
    Ablation(
        "unique",
        "each tenant has its own",
        "src/holdfast/client/gating.py",
        "json.dumps([task, tenant, value], sort_keys=True)",
        "json.dumps([task, value], sort_keys=True)",
        ("tests/integration/test_unique.py",),
    ),
    Ablation(
        "breakers",
        "a failure that counts is written with its run",
        "src/holdfast/worker/settler.py",
        "self._store.settle_jobs(self._worker, batch, marks=self._marks_of(batch))",
        "self._store.settle_jobs(self._worker, batch)",
        (BREAKERS,),
    ),
    Ablation(
        "breakers",
        "a bug in the task does not count",
        "src/holdfast/core/blame.py",
        "return row is not None and row.breaker",
        "return True",
        (BREAKERS,),
    ),
    Ablation(
        "breakers",
        "a run that finished in its own transaction tells its breaker",
        "src/holdfast/stores/settling.py",
        "if verdict is Verdict.APPLIED or (verdict is Verdict.ALREADY and isinstance(each, Succeed))",
        "if verdict is Verdict.APPLIED",
        ("tests/transactions/test_flow_inside.py", "-k", "probe"),
    ),
    Ablation(
        "breakers",
        "an isolated run tells its breaker",
        "src/holdfast/worker/isolation/running.py",
        "            run.failed = failed_in(answer)\n",
        "",
        ("tests/isolation/test_runs.py", "-k", "breaker"),
    ),
    Ablation(
        "P8",
        "nobody waits for a queue that is being drained",
        "src/holdfast/client/enqueuer.py",
        "            if isinstance(answer, Full) and not answer.draining:",
        "            if isinstance(answer, Full):",
        ("tests/integration/test_pauses.py", "-k", "drained"),
    ),
    Ablation(
        "P9",
        "settings that somebody has spoilt in the store are told of",
        "src/holdfast/worker/fetcher.py",
        "                self._on_ignored(queue, fields)",
        "                pass",
        ("tests/integration/test_audit.py", "-k", "spoilt"),
    ),
    Ablation(
        "moves",
        "what is moved by filter keeps its order",
        "src/holdfast/client/moving.py",
        "for at in range(len(last) - _ID_BYTES, -1, -_ID_BYTES)]",
        "for at in range(0, len(last), _ID_BYTES)]",
        ("tests/integration/test_move.py",),
    ),
    Ablation(
        "gates",
        "a rate whose bucket is never seen full again is refused",
        "src/holdfast/core/rate.py",
        "    if pace.burst * pace.gap_s > _LONGEST_S:",
        "    if False:",
        ("tests/attacks/test_slow_rates.py",),
    ),
    Ablation(
        "gates",
        "a guess beyond all dates is not made",
        "src/holdfast/client/hindrances.py",
        "until is None or until > self.now + _FAR_S",
        "until is None",
        ("tests/attacks/test_slow_rates.py",),
    ),
    Ablation(
        "audit",
        "of two operators who say different things of a limit, neither takes back the other's word",
        "src/holdfast/client/limits.py",
        "by=who, only=given)",
        "by=who)",
        ("tests/integration/test_audit.py",),
    ),
    Ablation(
        "gates",
        "a limit of a task or queue that there cannot be is refused",
        "src/holdfast/client/limits.py",
        "        _check(name)",
        "        pass",
        ("tests/attacks/test_limits_of_nothing.py",),
    ),
)
