"""The safeguards of what watches: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

WATCHING = "src/holdfast/observability/"
TESTS = "tests/observability/"

OF_WATCHING = (
    Ablation(
        "watching",
        "names that nobody knows make no series",
        WATCHING + "naming.py",
        "if len(self._taken) >= self._most or not self._known(name):",
        "if len(self._taken) >= self._most:",
        (TESTS + "test_bounds.py", "-k", "made_up"),
    ),
    Ablation(
        "watching",
        "the number of names is bounded",
        WATCHING + "naming.py",
        "if len(self._taken) >= self._most or not self._known(name):",
        "if not self._known(name):",
        (TESTS + "test_bounds.py", "-k", "many_queues or made_up"),
    ),
    Ablation(
        "watching",
        "what a process has counted outlives it",
        WATCHING + "crew.py",
        "        self._gone.take(counted)\n",
        "        del counted\n",
        (TESTS + "test_crew.py", "-k", "outlive and sqlite"),
    ),
    Ablation(
        "watching",
        "however many ask, the store is looked at once",
        WATCHING + "cluster.py",
        "if looking is None or looking.done() or",
        "if True or",
        (TESTS + "test_cluster.py", "-k", "however_many"),
    ),
    Ablation(
        "watching",
        "a store that does not answer holds up no scrape",
        WATCHING + "cluster.py",
        "async with asyncio.timeout(self._patience_s):",
        "async with asyncio.timeout(None):",
        (TESTS + "test_cluster.py", "-k", "away_after_a_while", "--timeout=20"),
    ),
    Ablation(
        "watching",
        "a client that says nothing is not waited for",
        WATCHING + "listener.py",
        "async with asyncio.timeout(_DEADLINE_S):",
        "async with asyncio.timeout(None):",
        (TESTS + "test_listener.py", "-k", "say_nothing"),
    ),
    Ablation(
        "watching",
        "connections to the port are bounded",
        WATCHING + "listener.py",
        "if len(self._serving) > _MOST_CONNECTIONS:",
        "if False:",
        (TESTS + "test_listener.py", "-k", "too_many"),
    ),
    Ablation(
        "watching",
        "what one job tells is not told of another",
        "src/holdfast/app/log_output.py",
        """if "_event" not in line or line.get("job_id") == fields.get("job_id", ""):""",
        "if True:",
        (TESTS + "test_logs.py", "-k", "not_told_of_another"),
    ),
    Ablation(
        "watching",
        "tracebacks are written without the values of variables",
        "src/holdfast/app/log_output.py",
        "plain = structlog.dev.plain_traceback",
        "plain = structlog.dev.RichTracebackFormatter(show_locals=True)",
        (TESTS + "test_logs.py", "-k", "values_of_variables"),
    ),
)
