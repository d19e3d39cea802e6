"""`hf.dead`: the dead letters. List, look, mend, replay, purge; nothing is ever dropped silently."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from holdfast.client.acts import MOST_COUNTED, Acts, count_words, filter_words, id_words
from holdfast.client.arguments import Signature, encode_call
from holdfast.client.filters import job_filter, list_page, parse_ids
from holdfast.client.gating import Flow
from holdfast.client.jobs import Jobs
from holdfast.client.request import Request
from holdfast.config import Config
from holdfast.core.errors import InvalidArguments, InvalidOptions, JobStateError, NotUnique
from holdfast.core.job import JobId, JobInfo
from holdfast.core.state import State
from holdfast.core.task import Registry
from holdfast.core.unique import Rekeyed
from holdfast.stores.base import JobFilter, JobPage, Store
from holdfast.stores.dead import Replayed

_Answer = TypeVar("_Answer", bound=int)
_BATCH = 500


class DeadLetters:
    """Jobs that gave up, each with its request, its error and every attempt."""

    def __init__(self, store: Store, jobs: Jobs, registry: Registry, config: Config, acts: Acts) -> None:
        self._store = store
        self._jobs = jobs
        self._registry = registry
        self._config = config
        self._acts = acts

    async def list(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        tag: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
        text: str | None = None,
        reason: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        limit: int = 100,
        before: JobId | str | None = None,
    ) -> JobPage:
        """Dead jobs that match all of these, newest first, in pages as those of `jobs.list`.

        `text` is words, all of which are in the error's message; `fingerprint` is that of an error (`job.error`);
        `reason` is `exhausted`, `permanent`, `poison`, ….
        """
        where = _where(
            queue=queue,
            task=task,
            tenant=tenant,
            tag=tag,
            error_type=error_type,
            fingerprint=fingerprint,
            text=text,
            reason=reason,
            created_after=created_after,
            created_before=created_before,
        )
        return await list_page(self._store, where, limit=limit, before=before)

    async def count(self, **filters: Any) -> int:
        """How many dead jobs match; filters as for `list`."""
        return await self._store.count_jobs(_where(**filters))

    async def count_for_record(self, **filters: Any) -> int:
        """The same, as far as records of what is done to them count: of more, it is not worth the time."""
        return await self._store.count_jobs(_where(**filters), most=MOST_COUNTED)

    async def get(self, job_id: JobId | str) -> JobInfo:
        """One dead job; JobStateError when it is not dead."""
        info = await self._jobs.get(job_id)
        if info.state is not State.DEAD:
            raise JobStateError(f"job {info.id} is not dead but {info.state}")
        return info

    async def replay(
        self,
        job_ids: JobId | str | Sequence[JobId | str] | None = None,
        *,
        everything: bool = False,
        by: str = "",
        **filters: Any,
    ) -> Replayed:
        """Run dead jobs again: one, several, or all that match; each keeps its id and history. Returns how many.

        Filters are those of `list`; `everything=True` stands for no filter. It is on record, with how many there were,
        as the changes of settings are: `by` says who it was, or else the user of this process. A job that has to be
        unique stays dead while another one is there: asked for by its one id, NotUnique is raised; of several, the
        others go on, and `in_the_way` of what is returned says which job is in whose way.
        """
        await self._record("replay", job_ids, everything, filters, by)
        parts = await self._on_matching(self._store.replay_jobs, job_ids, everything, filters, "replay")
        replayed = Replayed.of(parts)
        if replayed.in_the_way and isinstance(job_ids, (str, UUID)):
            [(job_id, other)] = replayed.in_the_way.items()
            raise NotUnique(other, task=(await self._jobs.get(job_id)).task, replaying=job_id)
        return replayed

    async def purge(
        self,
        job_ids: JobId | str | Sequence[JobId | str] | None = None,
        *,
        everything: bool = False,
        by: str = "",
        **filters: Any,
    ) -> int:
        """Drop dead jobs for good: one, several, or all that match, as for `replay`. Returns how many."""
        await self._record("purge", job_ids, everything, filters, by)
        return sum(await self._on_matching(self._store.purge_dead, job_ids, everything, filters, "purge"))

    async def edit(self, job_id: JobId | str, /, *args: Any, **kwargs: Any) -> None:
        """Replace the arguments of a dead job, checked against its task where this app knows it.

        What has to be unique goes by the new ones then, if the task said what that is. It is on record as an act of the
        user of this process: every name here is one of an argument.
        """
        info = await self.get(job_id)
        payload = self.check_edit(info, args, kwargs)
        await self._acts.record("edit", str(info.id), by="")
        if not await self._store.edit_dead(info.id, payload=payload, rekeyed=self._rekeyed(info, args, kwargs)):
            raise JobStateError(f"job {info.id} is no longer dead: its arguments were not changed")

    def check_edit(self, info: JobInfo, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """The call as it would be stored; InvalidArguments where `edit` would refuse it."""
        definition = self._registry.get(info.task)
        limit = self._config.payload_limit
        if definition is not None:
            return Signature(definition).encode(args, kwargs, limit=limit)
        return encode_call(info.task, args, kwargs, limit=limit)

    def _rekeyed(self, info: JobInfo, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Rekeyed | None:
        """By what the task says is unique; what only the call had said is not known any more."""
        definition = self._registry.get(info.task)
        if definition is None or definition.options.once is None or info.args is None or info.kwargs is None:
            return None
        once, known = definition.options.once, Signature(definition)
        after = Flow(Request(info.task, tuple(args), dict(kwargs), signature=known)).claim(once, info.tenant)
        try:
            before = Flow(Request(info.task, tuple(info.args), dict(info.kwargs), signature=known))
            return Rekeyed(before.claim(once, info.tenant).key, after.key)
        except (InvalidArguments, InvalidOptions):  # perhaps just why they are mended
            return None

    async def _record(
        self,
        verb: str,
        job_ids: JobId | str | Sequence[JobId | str] | None,
        everything: bool,
        filters: Mapping[str, Any],
        by: str,
    ) -> None:
        """What is refused is not on record."""
        if not self._acts.wanted:
            return
        if job_ids is not None:
            if not everything and not filters:
                ids = parse_ids(job_ids)
                await self._acts.record(verb, "dead letters", by=by, ids=id_words(ids), count=len(ids))
        elif everything or any(filters.values()):
            count = count_words(await self.count_for_record(**filters))
            words = {"filter": filter_words(filters), "everything": everything or None}
            await self._acts.record(verb, "dead letters", by=by, **words, count=count)

    async def _on_matching(
        self,
        act: Callable[[builtins.list[JobId]], Awaitable[_Answer]],
        job_ids: JobId | str | Sequence[JobId | str] | None,
        everything: bool,
        filters: Mapping[str, Any],
        verb: str,
    ) -> builtins.list[_Answer]:
        """What it says of each batch."""
        if job_ids is not None:
            if everything or filters:
                raise InvalidOptions(f"{verb}: give ids, or filters, or everything=True; not two of them")
            ids = parse_ids(job_ids)
            return [await act(ids[start : start + _BATCH]) for start in range(0, len(ids), _BATCH)]
        if not everything and not any(filters.values()):
            raise InvalidOptions(f"{verb}: say which: ids, filters (queue=, task=, error_type=, …), or everything=True")
        where = _where(**filters)
        answers: builtins.list[_Answer] = []
        page = JobPage()
        # By cursor, so that a job that dies again meanwhile is not taken twice.
        while True:
            page = await self._store.list_jobs(where, limit=_BATCH, before=page.next)
            if page:
                answers.append(await act([info.id for info in page]))
            if page.next is None:
                return answers


def _where(**filters: Any) -> JobFilter:
    if unknown := set(filters) - _FILTERS:
        raise InvalidOptions(f"unknown filter {sorted(unknown)[0]!r}; there are {', '.join(sorted(_FILTERS))}")
    return job_filter(state=State.DEAD, **filters)


_FILTERS = {field.name for field in fields(JobFilter)} - {"state"}
