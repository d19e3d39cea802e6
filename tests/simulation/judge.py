"""Whether a world kept the promises: the checker's invariants on its histories, and what only an onlooker can see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from uuid import UUID

from tests.history.checker import check
from tests.history.records import AttemptRow, History, JobRecord, KeyRow, Place, StoreRecord
from tests.history.report import Report, Violation
from tests.model.model import Job
from tests.simulation.flow_tasks import PRINTER
from tests.simulation.scene import Scene
from tests.simulation.server import NOBODYS, Server
from tests.simulation.story import RunSeen

from holdfast.core.cause import Cause
from holdfast.core.state import State

#: However long old workers are beside new ones: each time it is done less and less often.
_MOST_PARKINGS = 12
#: Workers stop their jobs when a tenth of the lease is left: who stood still for less than this had time to.
_TOO_SHORT = 0.05


def judge(scene: Scene) -> tuple[Report, list[str]]:
    """The report, and every sentence that says what was broken."""
    story = scene.story
    report = check(History(tuple(story.calls)), History(tuple(story.lines)), _record(scene), max_attempts=3)
    own = [*_overlaps(scene), *_answers(scene), *_lost_claims(scene), *_passed_around(scene)]
    return report, [*map(str, [*report.violations, *own]), *scene.world.objections]


def _record(scene: Scene) -> StoreRecord:
    server = scene.server
    model = server.model
    return StoreRecord(
        jobs={str(job_id): _job(server, job) for job_id, job in model.jobs.items()},
        depth=_depths(server),
        keys=tuple(KeyRow(tenant, key, str(row.job_id)) for (tenant, key), row in model.keys.items()),
        audit=tuple(server.audit),
        removed_workers=server.removed_workers,
        as_of=model.now,
        ruled=_ruled(scene),
    )


def _ruled(scene: Scene) -> frozenset[str]:
    """What jobs carry does not tell how many might run: an operator said otherwise, or the clock of tokens was set."""
    ruled = {PRINTER} if scene.narrowed else set()
    return frozenset(ruled | ({"post"} if scene.clock_was_set else set()))


def _job(server: Server, job: Job) -> JobRecord:
    job_id = job.new.id
    where = server.places[job_id]
    place = Place(
        job.state,
        where.token,
        where.worker,
        job.attempt,
        job.crashes,
        due_at=job.due_at if job.state is State.SCHEDULED else None,
        reason=job.reason,
        started_at=server.leases[where.token].started_at if where.token is not None else 0.0,
    )
    attempts = [
        AttemptRow(token, lease.attempt, cause, lease.worker, lease.started_at, lease.ended_at)
        for token, cause in job.causes.items()
        for lease in (server.leases[token],)
    ]
    gates = job.new.gates
    return JobRecord(str(job_id), job.new.queue, (place,), tuple(attempts), job.new.max_attempts, gates=gates)


def _depths(server: Server) -> dict[str, int]:
    depths: dict[str, int] = defaultdict(int)
    for job in server.model.jobs.values():
        if job.state is State.READY:
            depths[job.new.queue] += 1
    return depths


def _overlaps(scene: Scene) -> Iterator[Violation]:
    """A job is in user code once at a time, unless its process could not stop it: then it has an excuse.

    This is more than the store can promise: it is what workers do who stop their jobs before their lease ends.
    """
    if scene.clock_was_set:
        return  # a lease that ended early by the store's clock is nobody's fault
    by_job: dict[UUID, list[RunSeen]] = defaultdict(list)
    for run in scene.story.runs:
        by_job[run.job_id].append(run)
    for job_id, runs in by_job.items():
        for before, after in pairwise(sorted(runs, key=lambda run: run.began_s)):
            ended_s = min(before.ended_s, before.process.died_s)
            if ended_s <= after.began_s or before.lingers or _is_excused(scene, before, after.began_s):
                continue
            sentence = f"ran under token {after.token} from {after.began_s:.3f} s on, "
            sentence += f"while it still ran under {before.token} in {before.process.name}, until {ended_s:.3f} s"
            yield Violation("S1", str(job_id), sentence)


def _is_excused(scene: Scene, run: RunSeen, until_s: float) -> bool:
    """Whether its process stood still when it should have noticed that its lease was about to end."""
    lease_s = scene.config.lease_s
    since_s = scene.server.leases[run.token].ended_s - lease_s
    return any(
        began_s < until_s and ended_s > since_s and ended_s - began_s > _TOO_SHORT * lease_s
        for began_s, ended_s in run.process.excused
    )


def _answers(scene: Scene) -> Iterator[Violation]:
    """Whoever waited for an ending was told the one that is on record; and what nobody can run is where it belongs."""
    jobs = scene.server.model.jobs
    for job_id, state, value in scene.story.results:
        job = jobs[job_id]
        if state == "dead":  # it may have been replayed since
            continue
        if job.state != state:
            yield Violation("S2", str(job_id), f"is {job.state}, but somebody was told that it is {state}")
        elif state == "succeeded" and f"[{value}]" not in job.new.payload.decode():
            yield Violation("S2", str(job_id), f"somebody was told the result {value!r} of {job.new.payload!r}")
    for job_id, job in jobs.items():
        if job.new.task == NOBODYS and job.state not in (State.PARKED, State.CANCELLED, State.SCHEDULED):
            yield Violation("S3", str(job_id), f"is {job.state}, but no worker knows its task")


def _lost_claims(scene: Scene) -> Iterator[Violation]:
    """What ran was known to its worker: it is not handed back as a claim whose answer was lost."""
    ran = {run.token for run in scene.story.runs}
    for job_id, job in scene.server.model.jobs.items():
        for token, cause in job.causes.items():
            if cause is Cause.CLAIM_LOST and token in ran:
                yield Violation("S4", str(job_id), f"ran under token {token}, which was handed back as a lost claim")


def _passed_around(scene: Scene) -> Iterator[Violation]:
    """What some do not know and others do comes to those who know it."""
    for job_id, count in scene.server.parkings.items():
        if count > _MOST_PARKINGS:
            yield Violation("S5", str(job_id), f"was parked {count} times by workers that do not know its task")
