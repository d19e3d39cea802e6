"""The cells of a SQLite file: what befalls it has a test of its own, which is named here."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.table.cells import SQLITE, Cell

PART = "SQLite file"
_AWAY = "tests/faults/test_store_away.py::"
_FILE = "tests/faults/test_sqlite_file.py::"
_KILLS = "tests/faults/test_sqlite_kills.py::"
_OPENING = "tests/unit/stores/test_opening.py::"
#: moment, fault, what must hold, test, whether it needs more than Python
_ROWS = (
    (
        "while running",
        "SQLITE_BUSY from another process",
        "what runs goes on, its outcome is written when the lock is gone",
        _AWAY + "test_a_worker_outlasts_a_lock_and_keeps_what_it_runs",
    ),
    (
        "while starting",
        "SQLITE_BUSY from another process",
        "the worker waits for it",
        _AWAY + "test_a_worker_that_starts_at_a_locked_store_waits_for_it",
    ),
    (
        "past the lease",
        "SQLITE_BUSY from another process",
        "it costs the lease and nothing else",
        _AWAY + "test_a_lock_longer_than_the_lease_costs_the_lease_and_nothing_else",
    ),
    (
        "while producing",
        "SQLITE_BUSY from another process",
        "the caller is told, nothing is left",
        _AWAY + "test_an_enqueue_at_a_locked_store_says_so_and_leaves_nothing",
    ),
    (
        "any",
        "disk full (tmpfs)",
        "what was accepted is there, the rest was refused; all goes on when there is room",
        _AWAY + "test_a_full_disk_loses_nothing_that_was_accepted",
    ),
    (
        "while producing",
        "file deleted, moved or replaced",
        "nothing more is accepted, nothing is lost",
        _FILE + "test_a_file_that_loses_its_name_takes_nothing_more_and_loses_nothing",
    ),
    (
        "while running",
        "file moved",
        "the worker ends and says why",
        _FILE + "test_a_worker_whose_file_is_gone_ends_and_says_so",
    ),
    ("at the start", "file read-only", "a clear error", _OPENING + "test_a_file_that_this_user_may_not_write"),
    (
        "at the start",
        "directory read-only",
        "a clear error",
        _OPENING + "test_a_directory_that_this_user_may_not_write",
    ),
    ("at the start", "network file system", "a clear error", _OPENING + "test_a_network_file_system"),
    ("at the start", "not a database", "a clear error", _OPENING + "test_a_file_that_is_no_database"),
    (
        "any",
        "stuck reader",
        "nobody waits; the log grows meanwhile and is used again afterwards",
        _FILE + "test_a_reader_that_never_ends_holds_nobody_up_and_the_log_is_used_again_after_it",
    ),
    (
        "every write",
        "kill -9 (strace)",
        "the file is sound, what was accepted is there",
        _KILLS + "test_a_process_killed_at_any_write_keeps_what_it_has_accepted",
    ),
    (
        "every statement of a migration",
        "kill -9",
        "the next process makes the rest",
        _KILLS + "test_a_process_killed_at_any_statement_of_the_migration_leaves_a_store_that_opens",
    ),
    (
        "at the start",
        "four processes at once",
        "each step is made once",
        _OPENING + "test_four_processes_may_open_a_new_file_at_the_same_time",
    ),
    (
        "after a fork",
        "a connection in two processes",
        "the child is told to open its own",
        "tests/attacks/test_forked_store.py::test_a_fork_may_open_the_store_only_after_its_parent_has_closed_it",
    ),
)
_SYSTEM = ("disk full (tmpfs)", "kill -9 (strace)")


def cells() -> Iterator[Cell]:
    for moment, fault, holds, test in _ROWS:
        yield Cell(PART, moment, fault, SQLITE, holds, test=test, system=fault in _SYSTEM)
    yield Cell(
        PART,
        "any",
        "power lost",
        SQLITE,
        "what was accepted is on the disk (WAL, synchronous=FULL)",
        reason="no machine is switched off here: it rests on SQLite's own tests, and `synchronous` has an ablation",
    )
