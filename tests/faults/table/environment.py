"""The cells of the system around a worker and of its supervisor; and what FAULTS names that has a test of its own."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.table.cells import POSTGRES, STORES, Cell

PART = "system and supervisor"
OTHERS = "PostgreSQL, elsewhere"
BOTH = "both"
_STAFF = "tests/supervision/test_staff.py::"
_BACK = "tests/supervision/test_hand_back.py::"
_SERVER = "tests/faults/test_postgres_server.py::"
_LOST = "tests/faults/test_postgres_lost_answers.py::"

#: moment, fault, what must hold, test
_TESTS = (
    (
        "supervisor",
        "EMFILE: no process can be started",
        "it goes on with those it has, and starts others later",
        _STAFF + "test_without_file_descriptors_it_goes_on_with_what_it_has",
    ),
    (
        "isolates",
        "no process can be started",
        "jobs are given back, nothing spins",
        "tests/isolation/test_starting.py::test_where_none_can_be_started_jobs_are_given_back_and_nothing_spins",
    ),
    (
        "supervisor",
        "kill -9 of the supervisor alone",
        "its processes end",
        _BACK + "test_children_end_with_their_supervisor",
    ),
    (
        "R1",
        "kill -9 of a process under a supervisor",
        "its jobs run again at once in the spare",
        _BACK + "test_jobs_of_a_killed_process_run_again_in_the_spare",
    ),
    (
        "R1",
        "exit, segfault, abort, signals",
        "the cause is on record",
        _BACK + "test_the_cause_of_a_death_is_on_record",
    ),
    (
        "R1",
        "poison",
        "dead after three crashes, neighbours live",
        _BACK + "test_poison_ends_dead_and_its_neighbours_are_well",
    ),
    (
        "between a death and its hand-back",
        "the store is away",
        "the hand-back is given up, and the lease decides",
        "tests/attacks/test_supervised_closing.py::test_a_hand_back_that_never_gets_to_the_store_is_given_up",
    ),
    (
        "R1",
        "SIGSTOP under a supervisor",
        "it is ended while its lease lasts, its jobs run again",
        "tests/supervision/test_silence.py::test_a_stopped_process_is_ended_and_its_jobs_run_again",
    ),
    (
        "R1",
        "C code that keeps the GIL",
        "its process is ended",
        "tests/supervision/test_silence.py::test_code_that_stops_all_threads_is_ended",
    ),
    (
        "R1",
        "cancellation swallowed, no end",
        "its process is replaced",
        "tests/supervision/test_hard_limits.py::test_whatever_does_not_end_is_ended",
    ),
    (
        "R1",
        "SIGSTOP shorter than the lease",
        "nothing happens",
        "tests/faults/test_worker_moments.py::test_a_nap_shorter_than_the_lease_costs_nothing",
    ),
    (
        "H1",
        "wall clock set forward by an hour",
        "no running job starts again",
        "tests/attacks/test_deploys_and_clocks.py::test_a_clock_set_forward_by_an_hour_does_not_start_a_running_job_again",
    ),
    (
        "M1",
        "wall clock jumps",
        "nothing is reaped for one lease",
        "tests/unit/core/test_clock_guard.py::test_a_jump_is_distrusted_for_one_lease",
    ),
    (
        "M3",
        "two leaders",
        "who was stopped past its lease does nothing as a leader",
        "tests/faults/test_leader.py::test_a_leader_that_was_stopped_past_its_lease_does_no_more_of_its_work",
    ),
    (
        "SIGTERM",
        "one, then a second",
        "drain, then hand back",
        "tests/supervision/test_signals.py::test_the_second_signal_hands_back",
    ),
)
_POSTGRES_TESTS = (
    (
        "any",
        "disk full, for real (tmpfs)",
        "what was accepted is there",
        _SERVER + "test_a_full_disk_loses_nothing_that_was_accepted",
    ),
    (
        "any",
        "deadlock, for real",
        "the verb is repeated",
        _SERVER + "test_a_deadlock_is_somebody_elses_and_the_verb_is_repeated",
    ),
    (
        "any",
        "no free connection, for real",
        "said, and used when there is one",
        _SERVER + "test_a_server_without_a_free_connection_says_so_and_is_used_when_it_has_one",
    ),
    (
        "any",
        "read-only for a while",
        "waited for",
        _SERVER + "test_a_server_that_is_read_only_for_a_while_is_waited_for",
    ),
    (
        "at the start",
        "no server yet",
        "the worker waits",
        _SERVER + "test_a_worker_that_starts_before_its_server_waits_for_it",
    ),
    (
        "any",
        "LISTEN lost",
        "polling covers, a new listener comes",
        _LOST + "test_a_listener_that_hears_nothing_any_more_is_replaced",
    ),
    (
        "inside",
        "client silent in the middle of a statement",
        "the server ends it",
        "tests/faults/test_silent_sessions.py::test_who_has_prepared_a_statement_and_says_no_more_loses_his_locks",
    ),
    (
        "M5",
        "somebody holds a lock",
        "the migration gives up and changes nothing",
        "tests/postgres/test_migrations.py::test_a_migration_that_cannot_have_its_turn_says_why_and_changes_nothing",
    ),
    (
        "any",
        "plans after ANALYZE, a pinned snapshot",
        "a claim costs what it did",
        "tests/postgres/test_claim_plan.py::test_a_pinned_snapshot_does_not_make_claims_dearer",
    ),
)
_REASONS = (
    ("any", "full temporary directory", BOTH, "a worker writes nothing there; `:memory:` stores, for tests, do"),
    ("any", "RLIMIT_NPROC", BOTH, "the same error of the system, at the same call, as EMFILE in the supervisor"),
    ("any", "wall clock by libfaketime", BOTH, "clocks are jumped by ManualClock; leases go by the store's clock"),
    ("any", "fsync EIO", POSTGRES, "the server panics: to its clients that is an immediate restart, which is played"),
    ("any", "fail-over to an asynchronous standby", POSTGRES, "what it lost is lost: documented, no promise is made"),
    ("any", "reads from a lagging standby", POSTGRES, "no decision is made on one: there is one URL"),
    ("any", "any fault of schedules", BOTH, "not built yet"),
    ("any", "any fault of the HTTP API", BOTH, "not built yet"),
)
_BLOCKED = "the beat comes from a thread: the lease is kept, the job runs once"
_MEMORY = "the attempt has failed, the worker lives, the job is repeated"
_NO_FILES = "it waits, does not spin, and goes on when it has some; no job is lost"


def cells() -> Iterator[Cell]:
    for store in STORES:
        yield Cell(
            PART, "R1", "event loop blocked past the lease", store, _BLOCKED, scene="in_user_code", strike="block"
        )
        yield Cell(PART, "R1", "out of memory (RLIMIT_AS)", store, _MEMORY, scene="in_user_code", strike="memory")
        yield Cell(PART, "worker", "EMFILE (RLIMIT_NOFILE)", store, _NO_FILES, scene="deprived", strike="files")
    for moment, fault, holds, test in _TESTS:
        yield Cell(PART, moment, fault, BOTH, holds, test=test)
    for moment, fault, holds, test in _POSTGRES_TESTS:
        yield Cell(OTHERS, moment, fault, POSTGRES, holds, test=test, system="tmpfs" in fault)
    for moment, fault, store, reason in _REASONS:
        yield Cell(PART, moment, fault, store, "", reason=reason)
