"""Safeguards of what operators say of queues and breakers while everything runs; each with its tests."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

SLOTS, SLOTS_TESTS = "src/holdfast/worker/slots.py", ("tests/unit/worker/test_slots.py",)
BYPASSES, BYPASSES_TESTS = "src/holdfast/client/bypasses.py", ("tests/unit/client/test_bypasses.py",)
SQLITE, POSTGRES = "tests/contract/test_sqlite.py", "tests/contract/test_postgres.py"
AT_RUN_TIME = "tests/integration/test_options_at_run_time.py"

OF_RUN_TIME = (
    Ablation(
        "settings",
        "what operators say of a queue goes before what a worker is configured with",
        "src/holdfast/worker/queue_options.py",
        "            self._apply({**self._configured, **over})",
        "            self._apply({**over, **self._configured})",
        ("tests/unit/worker/test_queue_options.py", AT_RUN_TIME, "-k", "operators_name or bound_is_raised"),
    ),
    Ablation(
        "settings",
        "a bound where none was counts what runs",
        SLOTS,
        "self._by_queue.get(queue, counts[queue])",
        "self._by_queue.get(queue, 0)",
        SLOTS_TESTS,
    ),
    Ablation(
        "settings",
        "a bound that is raised has the worker look again at once",
        SLOTS,
        "        if self.on_room is not None and any(rooms.get(queue) != 0 for queue in full):",
        "        if False:",
        SLOTS_TESTS,
    ),
    Ablation(
        "errors",
        "a retry budget that is changed keeps its balance",
        "src/holdfast/worker/retry_budgets.py",
        "            if budget is None:\n                self._budgets",
        "            if True:\n                self._budgets",
        ("tests/unit/worker/test_retry_budgets.py",),
    ),
    Ablation(
        "P8",
        "who goes past a full queue is what operators say, where they say it",
        BYPASSES,
        "self._in_force = {**self._configured, **said}",
        "self._in_force = {**said, **self._configured}",
        BYPASSES_TESTS,
    ),
    Ablation(
        "P8",
        "a crowd that is refused does not ask for settings again and again",
        BYPASSES,
        "        self._asked_s = asked_s",
        "        pass",
        BYPASSES_TESTS,
    ),
    Ablation(
        "settings",
        "options that are left out stay as they are",
        "src/holdfast/stores/queue_rows.py",
        'fields["options"] = replace(settings.options, **options)',
        'fields["options"] = said.options',
        (SQLITE, "-k", "options_are_said"),
    ),
    Ablation(
        "settings",
        "an option that nobody can have meant counts as not set",
        "src/holdfast/stores/queue_rows.py",
        " for name, value in written.items() if _is_option(name, value)}",
        " for name, value in written.items()}",
        (AT_RUN_TIME, "-k", "nonsense_in_the_store"),
    ),
    Ablation(
        "breakers",
        "SQLite: what operators say of how a breaker counts goes before its marks",
        "src/holdfast/stores/sqlite/breakers.py",
        "after_mark(state, tx.now, each, said)",
        "after_mark(state, tx.now, each)",
        (SQLITE, "-k", "figures"),
    ),
    Ablation(
        "breakers",
        "PostgreSQL: what operators say of how a breaker counts goes before its marks",
        "src/holdfast/stores/postgres/breakers.py",
        "after_mark(after[name], now, mark, locked.figures[name])",
        "after_mark(after[name], now, mark)",
        (POSTGRES, "-k", "figures"),
    ),
    Ablation(
        "breakers",
        "figures that are left out stay as they are",
        "src/holdfast/stores/rule_rows.py",
        "    return now if only is None else said._replace(",
        "    return now if True else said._replace(",
        (SQLITE, "-k", "figures"),
    ),
    Ablation(
        "settings",
        "a span of a breaker that nobody can have meant counts as not set",
        "src/holdfast/stores/gate_rows.py",
        "_is_number(value) and SHORTEST_S <= value <= LONGEST_S else None",
        "_is_number(value) else None",
        ("tests/fuzz/test_options.py", "-k", "figures"),
    ),
    Ablation(
        "explain",
        "an explanation goes by the bound that operators have set",
        "src/holdfast/client/explaining.py",
        "    return queue.settings.options.bound",
        "    return bounds.get(info.queue)",
        (AT_RUN_TIME, "-k", "explanation"),
    ),
)
