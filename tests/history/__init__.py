"""The history checker: the judge of every kill campaign and fault test. It runs nothing itself.

It joins three histories and verifies the invariants behind Holdfast's promises:

1. what producers asked and were told, one JSON line per answer, written by `ClientRecorder`;
2. what each run of a task did, one JSON line per event, written from inside the task by `RunRecorder`;
3. what the store has on record, read after quiescence straight from its file by `read_sqlite`, with the
   trail of every move if `install_audit` was called on that file before the first job.

    install_audit(database)                          # once the store has migrated the file

    client = ClientRecorder(directory / "client")    # in each producer
    client.enqueue(job_id, answer=Answer.ASKED)      # before the call, if the producer may be killed
    client.enqueue(job_id, answer=Answer.OK)         # or FAIL, or UNKNOWN; cancel and replay alike

    run = RunRecorder(directory / "runs")            # in each worker process
    run.start(job.id, token=job.token, attempt=job.attempt, worker=name)
    run.effect(job.id, token=job.token, attempt=job.attempt, worker=name)
    run.end(job.id, token=job.token, attempt=job.attempt, worker=name)      # outcome="…" if it fails

    report = check(load_client(directory / "client"), load_runs(directory / "runs"), read_sqlite(database))
    assert report.sound, report

Give the recorders a directory that exists: each then writes a file of its own. A process killed inside a
write can tear its line; in its own file that is the last line, which is tolerated and counted. In a file
shared with others it would swallow the next writer's line, which is an error.

Checked: I1 to I11, I14 and I15. Without a trail I3, I6, I7 and I11 are checked as far as the record goes, and
I10 not at all. Not checked here: schedules (I12), workflows (I13), leaks (I16), reads (I17), liveness (I18).
That two runs overlapped in user code is counted, not condemned: a stopped worker that wakes up does that, and
only its writes can be refused.
"""

from __future__ import annotations

from tests.history.audit import install_audit
from tests.history.checker import check
from tests.history.recorder import ClientRecorder, RunRecorder
from tests.history.records import Answer, HistoryError, StoreRecord, load_client, load_runs
from tests.history.report import Report, Violation
from tests.history.store_record import read_sqlite

__all__ = [
    "Answer",
    "ClientRecorder",
    "HistoryError",
    "Report",
    "RunRecorder",
    "StoreRecord",
    "Violation",
    "check",
    "install_audit",
    "load_client",
    "load_runs",
    "read_sqlite",
]
