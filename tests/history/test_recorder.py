"""What the recorders write is what the loaders read, also after a writer was killed in the middle of a line."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from tests.history import Answer, ClientRecorder, HistoryError, RunRecorder, load_client, load_runs
from tests.history.records import Op, RunEvent


def _run_until_killed(directory: Path) -> None:
    recorder = RunRecorder(directory)
    recorder.start("job", token=7, attempt=1, worker="w")
    recorder.effect("job", token=7, attempt=1, worker="w")
    os.kill(os.getpid(), signal.SIGKILL)


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    recorder = RunRecorder(tmp_path / "runs.jsonl")
    recorder.start("job", token=7, attempt=2, worker="w")
    recorder.effect("job", token=7, attempt=2, worker="w")
    recorder.end("job", token=7, attempt=2, worker="w", outcome="failed")
    recorder.close()
    history = load_runs(tmp_path / "runs.jsonl")
    assert [line.event for line in history.lines] == list(RunEvent)
    assert {(line.run, line.attempt, line.worker, line.pid) for line in history.lines} == {
        (("job", 7), 2, "w", os.getpid())
    }
    assert [line.outcome for line in history.lines] == [None, None, "failed"]
    assert history.torn == 0


def test_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    recorder = ClientRecorder(tmp_path)
    recorder.enqueue("asked", answer=Answer.OK, told="other", key="k", tenant="t", fingerprint="f")
    recorder.cancel("asked", answer=Answer.OK, told="requested")
    recorder.replay("asked", answer=Answer.UNKNOWN)
    recorder.close()
    enqueue, cancel, replay = load_client(tmp_path).lines
    assert (enqueue.op, enqueue.answered_id, enqueue.key, enqueue.tenant) == (Op.ENQUEUE, "other", "k", "t")
    assert (cancel.op, cancel.answered_id, cancel.told) == (Op.CANCEL, "asked", "requested")
    assert (replay.op, replay.answer) == (Op.REPLAY, Answer.UNKNOWN)


def test_what_a_killed_process_wrote_is_kept(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_run_until_killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert [line.event for line in load_runs(tmp_path).lines] == [RunEvent.START, RunEvent.EFFECT]


def test_every_writer_into_a_directory_has_its_own_file(tmp_path: Path) -> None:
    for recorder in (RunRecorder(tmp_path), RunRecorder(tmp_path)):
        recorder.start("job", token=1, attempt=1)
        recorder.close()
    assert len(list(tmp_path.iterdir())) == len(load_runs(tmp_path).lines) == 2


@pytest.mark.parametrize("cut", [1, 30])
def test_a_torn_last_line_is_tolerated_and_counted(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "runs.jsonl"
    recorder = RunRecorder(path)
    for token in (1, 2):
        recorder.start("job", token=token, attempt=1)
    recorder.close()
    path.write_bytes(path.read_bytes()[:-cut])
    history = load_runs(path)
    assert [line.token for line in history.lines] == [1]
    assert history.torn == 1


def test_a_torn_line_elsewhere_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    recorder = RunRecorder(path)
    for token in (1, 2):
        recorder.start("job", token=token, attempt=1)
    recorder.close()
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(first[:-9] + second + b"\n")
    with pytest.raises(HistoryError, match=r"runs\.jsonl:1: not a line of this history"):
        load_runs(path)


def test_a_line_with_an_unknown_event_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('["job","nap",1,1,"w",1,1.0,null]\n', encoding="utf-8")
    with pytest.raises(HistoryError, match="nap"):
        load_runs(path)


def test_a_line_too_long_to_be_written_at_once_is_refused(tmp_path: Path) -> None:
    recorder = RunRecorder(tmp_path)
    with pytest.raises(HistoryError, match="too long"):
        recorder.start("job", token=1, attempt=1, worker="w" * 4096)
    recorder.close()
    assert load_runs(tmp_path).lines == ()
