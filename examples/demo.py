"""`make run`: a job's life in all its variants, told line by line, on a database of its own; ends by itself.

python -m examples.demo [--seconds N]     with N it goes on producing jobs; Ctrl-C drains and ends it
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from holdfast import Holdfast, JobFailed, JobHandle, JobInfo, PermanentError, RetryPolicy, current_job
from holdfast.telemetry.events import (
    Event,
    JobBuried,
    JobEnqueued,
    JobRetried,
    JobSettled,
    JobStarted,
    WorkerDraining,
    WorkersReaped,
    WorkerStarted,
    WorkerStopped,
)

# The second process of the demonstration is told by this variable which file the first one has made.
VARIABLE = "DEMO_DATABASE"
DATABASE = Path(os.environ.get(VARIABLE) or Path(tempfile.mkdtemp(prefix="holdfast-demo-")) / "demo.db")

hf = Holdfast(f"sqlite:///{DATABASE}", concurrency=8, lease_s=3.0, grace_s=10.0)

# ---------------------------------------------------------------- tasks


@hf.task
async def resize_image(number: int) -> str:
    await asyncio.sleep(0.05)
    return f"image-{number}.webp"


@hf.task
async def import_rows(rows: int) -> int:
    for row in range(rows):
        await asyncio.sleep(0.4)
        await current_job().progress(row + 1, rows, stage="reading" if row < rows / 2 else "writing")
    return rows


@hf.task(retry=RetryPolicy(max_attempts=4, base=0.4, jitter="none"))
async def call_partner(name: str) -> str:
    if current_job().attempt < 3:
        raise ConnectionError(f"{name} does not answer")
    return f"{name} answered"


@hf.task
async def charge(customer: str, cents: int) -> str:
    if cents <= 0:
        raise PermanentError(f"{cents} cents cannot be charged")
    return f"{customer} paid {cents} cents"


@hf.task(queue="mail")
async def send_mail(number: int) -> None:
    await asyncio.sleep(0.1)


@hf.task
async def remind(who: str) -> str:
    return f"{who} was reminded"


@hf.task
async def train_model(hours: int) -> None:
    await asyncio.sleep(hours * 3600)


@hf.task
async def write_report(month: str) -> str:
    await asyncio.sleep(1.0)
    return f"report-{month}.pdf"


# ---------------------------------------------------------------- telling


class Narrator:
    """Tells what happens as it happens: a subscriber of the app's events."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.mails: list[int] = []
        """Priorities, in the order in which mails were started; a line for each would be too much."""
        self._priorities: dict[object, int] = {}

    def say(self, what: str, detail: str = "") -> None:
        print(f"{time.monotonic() - self._began:6.2f} s  {what:<26} {detail}".rstrip(), flush=True)

    def __call__(self, event: Event) -> None:
        match event:
            case JobEnqueued() if event.task.endswith("send_mail"):
                self._priorities[event.job_id] = event.priority
            case JobStarted() if event.task.endswith("send_mail"):
                self.mails.append(self._priorities[event.job_id])
            case JobSettled() if event.task.endswith("send_mail"):
                pass
            case JobEnqueued():
                self.say(_name(event), f"enqueued, {event.state}")
            case JobStarted():
                self.say(_name(event), "started" + (f", attempt {event.attempt}" if event.attempt > 1 else ""))
            case JobRetried():
                self.say(_name(event), f"failed, again in {event.delay_s:g} s: {event.error}")
            case JobBuried():
                self.say(_name(event), f"dead ({event.reason}): {event.error.partition(': ')[2]}")
            case JobSettled(outcome="succeeded" | "cancelled"):
                done = "succeeded" if event.outcome == "succeeded" else "stopped, cancelled"
                self.say(_name(event), f"{done} after {event.duration_s:.2f} s")
            case WorkersReaped():
                self.say(
                    "worker", f"one was silent for its whole lease: declared dead, {event.jobs} job is ready again"
                )
            case WorkerStarted():
                self.say("worker", f"started, {event.concurrency} jobs at once")
            case WorkerDraining():
                self.say("worker", f"claims nothing more, lets {event.running} running jobs end")
            case WorkerStopped():
                self.say("worker", "stopped in good order")
            case _:
                pass


def _name(event: JobEnqueued | JobStarted | JobRetried | JobBuried | JobSettled) -> str:
    return f"{event.task.rpartition('.')[2]} …{str(event.job_id)[-4:]}"


def heading(text: str) -> None:
    print(f"\n{text}", flush=True)


# ---------------------------------------------------------------- scenes


async def kill_a_worker(narrator: Narrator) -> JobHandle[str]:
    """Another process takes a job and is killed in the middle of it; who finishes the job is seen later."""
    job = await write_report.enqueue("May")
    command = (sys.executable, "-m", "examples.demo", "--worker")
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, VARIABLE: str(DATABASE)})
    try:
        async with asyncio.timeout(30):
            async for info in job.events():
                if info.state == "running":
                    break
    finally:
        process.kill()
        await process.wait()
    narrator.say("worker", f"process {process.pid} had started that job and was killed with SIGKILL")
    return job


async def mix(narrator: Narrator) -> None:
    """Quick, slow, flaky, hopeless, delayed, cancelled and prioritised jobs, all at once."""
    waiting = [
        await resize_image.enqueue(1),
        await resize_image.enqueue(2),
        await call_partner.enqueue("the bank"),
        await remind.options(delay=2.5).enqueue("Ada"),
    ]
    slow = await import_rows.enqueue(8)
    hopeless = await charge.enqueue("Bob", -700)

    long = await train_model.options(timeout=None).enqueue(12)
    never = await remind.options(delay=3600).enqueue("Cleo")
    narrator.say(f"remind …{str(never.id)[-4:]}", f"{await never.cancel('not needed')} while it waited")

    bulk = [send_mail.options(priority="bulk").request(number) for number in range(8)]
    critical = [send_mail.options(priority="critical").request(number) for number in range(8)]
    mails = await hf.enqueue_many(bulk + critical)

    async for info in slow.events():
        if info.progress is not None and info.state == "running":
            done, total = int(info.progress.done), int(info.progress.total or 0)
            narrator.say(f"import_rows …{str(slow.id)[-4:]}", f"[{'#' * done:.<{total}}] {info.stage}")
            if done == 4:
                await long.cancel("too dear")

    for job in [*waiting, *mails]:
        await job.result(timeout=30)
    order = "".join("C" if priority == 9 else "b" for priority in narrator.mails)
    narrator.say("send_mail (16 jobs)", f"8 bulk enqueued before 8 Critical ones, started: {order}")

    try:
        await hopeless.result(timeout=10)
    except JobFailed:
        heading("The dead letter is mended and replayed")
        letter = await hf.dead.get(hopeless.id)
        narrator.say(f"charge …{str(letter.id)[-4:]}", f"dead letter with arguments {letter.args}; now: ('Bob', 700)")
        await hf.dead.edit(letter.id, "Bob", 700)
        await hf.dead.replay(letter.id)
        narrator.say(f"charge …{str(letter.id)[-4:]}", await hopeless.result(timeout=10))


async def keep_producing(seconds: float, narrator: Narrator) -> None:
    """Random jobs until the time is over; one line per second."""
    deadline = time.monotonic() + seconds
    enqueued = 0
    while time.monotonic() < deadline:
        for _ in range(random.randrange(1, 40)):
            await resize_image.options(priority=random.randrange(10)).enqueue(enqueued)
            enqueued += 1
        await asyncio.sleep(1.0)
        queues = await hf.queues.list()
        ready, running = sum(queue.ready for queue in queues), sum(queue.running for queue in queues)
        narrator.say("producing", f"{enqueued} enqueued so far, {ready} ready, {running} running")


async def summarise() -> None:
    """Every job and every run, as the store has them."""
    heading("What the store has on record")
    infos: list[JobInfo] = []
    while page := await hf.jobs.list(limit=1000, before=infos[-1].id if infos else None):
        infos += page
    print(f"  {'task':<14} {'jobs':>5} {'runs':>5} {'succeeded':>10} {'dead':>5} {'cancelled':>10} {'waiting':>8}")
    for task in sorted({info.task for info in infos}):
        ours = [info for info in infos if info.task == task]
        states = Counter("waiting" if not info.state.ended else str(info.state) for info in ours)
        cells = [f"{len(ours):>5}", f"{sum(map(_runs, ours)):>5}", f"{states['succeeded']:>10}"]
        cells += [f"{states['dead']:>5}", f"{states['cancelled']:>10}", f"{states['waiting']:>8}"]
        print(f"  {task.rpartition('.')[2]:<14} {' '.join(cells)}")
    causes = Counter(run.cause for info in infos for run in info.attempts if run.cause not in ("dead", "cancelled"))
    print("  Why jobs ran more than once:", ", ".join(f"{cause} {n}" for cause, n in causes.items()) or "none did")


def _runs(info: JobInfo) -> int:
    """Every run that did not succeed has a row of its own."""
    return len(info.attempts) + (info.state == "succeeded")


async def demonstrate(seconds: float) -> None:
    narrator = Narrator()
    print(f"Holdfast demonstration; all jobs are in {DATABASE} until it ends.")
    async with hf:
        heading("A worker is killed in the middle of a job")
        detach = hf.telemetry.attach(narrator)
        report = await kill_a_worker(narrator)
        heading("A second worker starts, and all kinds of jobs are enqueued")
        async with hf.worker():
            await mix(narrator)
            narrator.say(f"write_report …{str(report.id)[-4:]}", f"result: {await report.result(timeout=30)}")
            if seconds:
                heading(f"Producing for {seconds:g} s; Ctrl-C ends it earlier")
                detach()
                hf.telemetry.attach(narrator, only=(WorkerDraining, WorkerStopped))
                await keep_producing(seconds, narrator)
        await summarise()
    heading("What to try next")
    print("  make run ARGS='--seconds 30'                more jobs; press Ctrl-C and see it drain")
    print("  .venv/bin/python -m examples.dead_letters   also: quickstart, idempotency, progress, backpressure")
    print("  README.md, then docs/tasks.md               how to write tasks of your own")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description="Holdfast's demonstration.")
    parser.add_argument("--seconds", type=float, default=0.0, help="go on producing jobs for so long")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    logging.getLogger("holdfast").setLevel(logging.CRITICAL)  # what it would log is told by the narrator
    if arguments.worker:
        hf.run_worker()
        return
    try:
        asyncio.run(demonstrate(arguments.seconds))
    except KeyboardInterrupt:
        print("\nInterrupted: the worker was drained; what it had not begun would still be there for the next one.")
    finally:
        shutil.rmtree(DATABASE.parent, ignore_errors=True)


if __name__ == "__main__":
    main()
