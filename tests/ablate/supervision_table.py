"""The safeguards of the supervisor: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

SUPERVISION = "src/holdfast/worker/supervision/"
TESTS = "tests/supervision/"

UNDER_A_SUPERVISOR = (
    Ablation(
        "P10",
        "what a dead process ran is handed back by its supervisor",
        SUPERVISION + "supervisor.py",
        "if seen.worker is not None and child.config is not None and not orderly:",
        "if False:",
        (TESTS + "test_hand_back.py", "-k", "killed_process and sqlite"),
    ),
    Ablation(
        "P10",
        "a process with a run past its hard limit is killed",
        SUPERVISION + "watch.py",
        "            if overdue:",
        "            if overdue and False:",
        (TESTS + "test_hard_limits.py", "-k", "swallows", "tests/unit/worker/supervision/test_watch.py"),
    ),
    Ablation(
        "P10",
        "whoever was killed at its hard limit is charged",
        SUPERVISION + "recovery.py",
        "                await store.settle_jobs(worker, settlements)",
        "                pass",
        (TESTS + "test_hard_limits.py", "-k", "swallows"),
    ),
    Ablation(
        "P10",
        "neighbours of a known culprit are not suspected",
        SUPERVISION + "supervisor.py",
        "suspects=[] if child.culprits else runs,",
        "suspects=runs,",
        (TESTS + "test_hard_limits.py", "-k", "not_suspected and sqlite"),
    ),
    Ablation(
        "P10",
        "a silent process is killed while its lease lasts",
        SUPERVISION + "watch.py",
        "> SILENT * config.lease_s:",
        "> 1000 * config.lease_s:",
        ("tests/unit/worker/supervision/test_watch.py",),
    ),
    Ablation(
        "P10",
        "a supervisor that was held up blames nobody for it",
        SUPERVISION + "watch.py",
        "            self._awake_since_s = now_s",
        "            pass",
        ("tests/unit/worker/supervision/test_watch.py",),
    ),
    Ablation(
        "P10",
        "worker processes end with their supervisor, whatever they are doing",
        "src/holdfast/cli/supervising.py",
        "    die_with_parent(parent)",
        "    del parent",
        (TESTS + "test_hand_back.py", "-k", "end_with_their_supervisor"),
    ),
    Ablation(
        "P10",
        "a run that has ended is not suspected of what comes after it",
        SUPERVISION + "watching.py",
        "        self._board.end(self._row)",
        "        return",
        (TESTS + "test_hand_back.py", "-k", "has_ended"),
    ),
    Ablation(
        "P10",
        "only suspects are marked by the death of their process",
        "src/holdfast/core/loss.py",
        "(suspects is None or token in suspects)",
        "bool(token)",
        ("tests/contract/test_sqlite.py", "-k", "memory and suspects"),
    ),
)
