"""The safeguards of the supervisor: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

SUPERVISION = "src/holdfast/worker/supervision/"
TESTS = "tests/supervision/"

UNDER_A_SUPERVISOR = (
    Ablation(
        "P10",
        "a supervisor survives that it can start no process",
        SUPERVISION + "supervisor.py",
        "        except OSError as error:",
        "        except ZeroDivisionError as error:",
        (TESTS + "test_environment.py", "-k", "no_process_can_be_started"),
    ),
    Ablation(
        "P10",
        "a process is collected also where the kernel tells nobody of its end",
        "src/holdfast/runtime/started_process.py",
        "            self._ask()\n        else:",
        "            pass\n        else:",
        ("tests/unit/runtime/test_started_process.py",),
    ),
    Ablation(
        "P10",
        "a worker that stops does not wait for an answer to its upkeep that never comes",
        "src/holdfast/upkeep/periodic.py",
        "super().__init__(stop_timeout_s=_STOP_WITHIN_S)",
        "super().__init__()",
        ("tests/attacks/test_postgres_unanswered_stop.py", "-k", "leads"),
    ),
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
        "src/holdfast/worker/executor.py",
        "                board.end(run.row)",
        "                pass",
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
    Ablation(
        "P10",
        "a process that waits for its lease is not taken for dead",
        SUPERVISION + "watch.py",
        "if seen.worker is None or not seen.beat_s:",
        "if seen.worker is None:",
        ("tests/unit/worker/supervision/test_watch.py",),
    ),
    Ablation(
        "P10",
        "a first process that dies before it has said anything is started again",
        SUPERVISION + "supervisor.py",
        "interval_s = LOOK_EVERY_S if self._config is None",
        "interval_s = None if self._config is None",
        ("tests/attacks/test_supervised_stillbirth.py",),
    ),
    Ablation(
        "P8",
        "processes that wait for their last jobs are bounded in number",
        SUPERVISION + "supervisor.py",
        "child.outdated is not None and self._may_retire]",
        "child.outdated is not None]",
        ("tests/attacks/test_supervised_recycling.py", "-k", "pile_up"),
    ),
    Ablation(
        "P10",
        "jobs are handed back to the file that the worker uses",
        "src/holdfast/cli/supervising.py",
        "settings=from_anywhere(hf.config).values()",
        "settings=hf.config.values()",
        ("tests/attacks/test_supervised_elsewhere.py",),
    ),
)
