"""The safeguards of flow control: errors, budgets, routes, bounds; each with the tests that must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation
from tests.ablate.client_gates_table import OF_USERS
from tests.ablate.explaining_table import OF_EXPLAINING
from tests.ablate.gates_table import OF_GATES
from tests.ablate.http_table import OF_HTTP
from tests.ablate.postgres_gates_table import AT_POSTGRES_GATES
from tests.ablate.postgres_slots_table import OF_POSTGRES_SLOTS
from tests.ablate.routes_table import OF_ROUTES
from tests.ablate.run_time_table import OF_RUN_TIME
from tests.ablate.sqlite_gates_table import AT_SQLITES_GATES
from tests.ablate.watching_table import OF_WATCHING

CLASSES = "src/holdfast/core/error_classes.py"
BOUNDS = ("tests/integration/test_queue_concurrency.py",)
FULL = ("tests/integration/test_full_queues.py",)

FLOW_CONTROL = (
    *OF_GATES,
    *AT_SQLITES_GATES,
    *AT_POSTGRES_GATES,
    *OF_POSTGRES_SLOTS,
    *OF_USERS,
    *OF_RUN_TIME,
    *OF_EXPLAINING,
    *OF_WATCHING,
    *OF_HTTP,
    *OF_ROUTES,
    Ablation(
        "P2",
        "a wait that the other side asks for counts as an attempt",
        CLASSES,
        "            if not row.charge:",
        "            if True:",
        ("tests/unit/core/test_error_classes.py", "tests/integration/test_error_classes.py"),
    ),
    Ablation(
        "errors",
        "what a task's policy names goes before the table",
        CLASSES,
        "ruling = policy.ruling(exc)",
        "ruling = Ruling.NONE",
        ("tests/unit/core/test_error_classes.py",),
    ),
    Ablation(
        "errors",
        "a message cannot forge the class of its error",
        "src/holdfast/core/outcome.py",
        """        trace = f"{trace}{CLASS_LINE}{error_class}\\n\"""",
        "        pass",
        ("tests/integration/test_error_classes.py",),
    ),
    Ablation(
        "errors",
        "retries above the budget come later",
        "src/holdfast/core/retry_budget.py",
        "        if again and self._balance < _ENOUGH:",
        "        if False:",
        ("tests/unit/core/test_retry_budget.py", "tests/integration/test_retry_budget.py"),
    ),
    Ablation(
        "errors",
        "the budget is asked again before a retry begins",
        "src/holdfast/worker/session.py",
        "        if self._budgets.in_use and (put_off := self._budgets.put_off(job)) is not None:",
        "        if self._budgets.in_use and (put_off := self._budgets.put_off(job)) is not None and False:",
        ("tests/integration/test_retry_budget.py",),
    ),
    Ablation(
        "routing",
        "the most specific pattern is asked first",
        "src/holdfast/core/routing.py",
        "    return tuple(sorted(rules, key=lambda rule: rule.weight, reverse=True))",
        "    return tuple(rules)",
        ("tests/unit/core/test_routing.py", "tests/integration/test_routing.py"),
    ),
    Ablation(
        "P9",
        "a queue that has its bound of jobs here is not asked for more",
        "src/holdfast/worker/fetcher.py",
        "plan = self._quotas.plan(self._slots.free, now_s, self._slots.rooms)",
        "plan = self._quotas.plan(self._slots.free, now_s)",
        BOUNDS,
    ),
    Ablation(
        "P9",
        "the end of a job has the next one of a bounded queue started",
        "src/holdfast/worker/fetcher.py",
        "        slots.on_room = self.wake",
        "        slots.on_room = None",
        BOUNDS,
    ),
    Ablation(
        "P8",
        "that a queue has closed is told once, not by everybody who waits",
        "src/holdfast/client/refusals.py",
        "        if watch is None:",
        "        if True:",
        FULL,
    ),
    Ablation(
        "P8",
        "a batch goes past a full queue only if all of it may",
        "src/holdfast/client/bypasses.py",
        "return all(job.priority",
        "return any(job.priority",
        FULL,
    ),
)
