"""The core decides and does nothing else: no waiting, no clock, no environment, no files, no third party."""

from __future__ import annotations

import ast
import sys

from tests.architecture.sources import dotted, imported, sources

# Of the standard library, what waits, does I/O, starts something or tells the time.
IMPURE = {
    "asyncio", "concurrent", "http", "io", "logging", "multiprocessing", "pathlib", "queue", "select",
    "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading",
    "time", "urllib",
}  # fmt: skip

# module -> (what it may import all the same, why)
ARGUED: dict[str, tuple[set[str], str]] = {
    "core/ids.py": (
        {"threading", "time"},
        "an id starts with the wall clock's milliseconds and grows across threads; no decision reads it",
    ),
    "core/urls.py": ({"urllib"}, "takes apart the text of a URL; of urllib it needs `parse` alone"),
}

FORBIDDEN_NAMES = {
    "os.environ", "os.getenv", "os.putenv", "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today", "uuid1", "uuid.uuid1",
}  # fmt: skip

FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint"}


def test_the_core_imports_pure_parts_of_the_standard_library_and_itself() -> None:
    pure = sys.stdlib_module_names - IMPURE
    wrong = {
        (source.name, name.partition(".")[0])
        for source in sources("core")
        for _, name in imported(source.tree)
        if not name.startswith("holdfast.core.") and name.partition(".")[0] not in pure
    }
    # Equal, not a subset: an exception goes when it is no longer needed.
    assert wrong == {(module, name) for module, (names, _) in ARGUED.items() for name in names}


def test_the_core_does_not_wait() -> None:
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    wrong = [
        f"{source.name}:{node.lineno}"
        for source in sources("core")
        for node in ast.walk(source.tree)
        if isinstance(node, waiting)
    ]
    assert not wrong


def test_the_core_reads_no_clock_no_environment_and_no_file() -> None:
    wrong = []
    for source in sources("core"):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute | ast.Name) and dotted(node) in FORBIDDEN_NAMES:
                wrong.append(f"{source.name}:{node.lineno} uses {dotted(node)}")
            if isinstance(node, ast.Call) and dotted(node.func) in FORBIDDEN_CALLS:
                wrong.append(f"{source.name}:{node.lineno} calls {dotted(node.func)}")
    assert not wrong
