"""What `jobs show` and `dead show` say of a job's runs and its error."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from holdfast import State
from holdfast.cli.job_report import report_job
from holdfast.cli.output import Output
from holdfast.core.job import AttemptInfo, ErrorInfo, JobInfo

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
ERROR = ErrorInfo("ConnectionError", "the bank does not answer", "Traceback (most recent call last): …")
#: As it was told on PostgreSQL, where tokens begin far above one.
RUNS = tuple(
    AttemptInfo(number, 1_099_511_627_777 + token, cause, ERROR, None, NOW, NOW)
    for token, (number, cause) in enumerate([(1, "retry"), (2, "replay")])
)
JOB = JobInfo(
    UUID(int=1), "shop.charge", "default", 5, "", State.SUCCEEDED, 1, 2, NOW, error=ERROR, attempts=RUNS, kwargs={}
)


def told(job: JobInfo, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    report_job(Output(), job, "why not")
    return dict(line.split("\t") for line in capsys.readouterr().out.splitlines())


def test_runs_are_counted_from_the_jobs_first_and_the_last_is_among_them(capsys: pytest.CaptureFixture[str]) -> None:
    fields = told(JOB, capsys)
    assert {name: value for name, value in fields.items() if name.startswith("run ")} == {
        "run 1": "attempt 1, retry: ConnectionError: the bank does not answer",
        "run 2": "attempt 2, replay: ConnectionError: the bank does not answer",
        "run 3": "attempt 1, succeeded",
    }


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (State.SUCCEEDED, None),
        (State.DEAD, "error"),
        (State.RUNNING, "last error"),
        (State.SCHEDULED, "last error"),
    ],
)
def test_an_error_is_the_jobs_own_only_where_it_died_of_it(
    state: State, name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = told(replace(JOB, state=state), capsys)
    assert ({"error", "last error"} & set(fields)) == ({name} if name else set())
    assert ("traceback" in fields) == (name is not None)
