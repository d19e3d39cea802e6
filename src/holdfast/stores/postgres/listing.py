"""Lists of jobs by filter, newest first, with bounded work for every page (docs/decisions/0070).

A filter has one or more sources: indexes that give the ids of jobs for which some of its conditions hold, newest first.
Where one source holds all of them, it is the page. Else the source that reaches furthest back gives a bounded number
of candidates, and the other conditions are checked on each; a page that is short because of that bound says where to
go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.core.error_words import words_of
from holdfast.core.ids import first_id_at
from holdfast.core.job import JobId
from holdfast.core.state import State
from holdfast.stores.base import JobFilter, JobPage
from holdfast.stores.postgres.inspect import job_infos
from holdfast.stores.postgres.transaction import Tx

#: Candidates that one page looks at, where no index holds all conditions.
LOOK = 250
#: A list by queue alone merges so many tasks at most, one by task so many queues.
MOST_MERGED = 100

_LEAST, _GREATEST = UUID(int=0), UUID(int=(1 << 128) - 1)
_TABLES = {
    State.READY: "ready",
    State.SCHEDULED: "timer",
    State.RUNNING: "active",
    State.PARKED: "parked",
    State.BLOCKED: "blocked",
    State.SUCCEEDED: "done",
    State.CANCELLED: "done",
    State.DEAD: "dead",
}
_OF_DEAD = ("queue", "task", "tenant", "reason", "error_type", "fingerprint")
_WITH_QUEUE = frozenset({State.SCHEDULED, State.PARKED, State.BLOCKED})
_WITH_REASON = (State.DEAD, State.PARKED, State.CANCELLED)
_ALWAYS = "TRUE"


class Bounds(NamedTuple):
    """Ids that come into question: `after` ≤ id < `before`."""

    before: UUID
    after: UUID


class Source(NamedTuple):
    """Where candidates come from: branches of (table, condition, values), merged; and the conditions they hold."""

    branches: tuple[tuple[str, str, tuple[Any, ...]], ...]
    holds: frozenset[str]


class Found(NamedTuple):
    """Candidates, newest first; `all`: there are no more."""

    ids: list[UUID]
    all: bool
    holds: frozenset[str]


async def list_jobs(tx: Tx, where: JobFilter, *, limit: int, before: JobId | None) -> JobPage:
    """A page, in a transaction whose planner is told to go by indexes."""
    asked = conditions(where)
    if asked is None:
        return JobPage()
    bounds = _bounds(where, before)
    await tx.fetch("list_jobs.pin")
    found = await _candidates(tx, asked, bounds, limit)
    matching = sorted(await _check(tx, found, asked), reverse=True)
    ids = matching[:limit]
    infos = await job_infos(tx, ids)
    return JobPage((info for info in infos if info is not None), cursor=_next(found, ids, limit))


def _next(found: Found, ids: Sequence[UUID], limit: int) -> UUID | None:
    if len(ids) == limit:
        return ids[-1]
    return None if found.all else found.ids[-1]


async def count_jobs(tx: Tx, where: JobFilter, *, most: int | None) -> int:
    """How many match, up to `most`."""
    asked = conditions(where)
    if asked is None:
        return 0
    table = _TABLES[asked["state"]] if "state" in asked else "job"
    values: list[Any] = [*_bounds(where, None), most]
    text = _all_of(tx, asked, values)
    statement = tx.statement("list_jobs.count").format(table=table, id=_id_of(table), condition=text)
    return int(await tx.connection.fetchval(statement, *values))


def conditions(where: JobFilter) -> dict[str, Any] | None:
    """What must hold, by name; None where nothing can match. Only the dead have errors, so those ask for them."""
    names = ("state", "queue", "task", "tenant", "tag", "error_type", "fingerprint", "reason")
    asked = {name: getattr(where, name) for name in names if getattr(where, name) is not None}
    words = [] if where.text is None else words_of(where.text)
    if words:
        asked["text"] = words
    of_dead = any(each is not None for each in (where.text, where.error_type, where.fingerprint))
    if of_dead and asked.setdefault("state", State.DEAD) is not State.DEAD:
        return None
    if where.reason is not None and asked.get("state", State.DEAD) not in _WITH_REASON:
        return None
    return asked


def _bounds(where: JobFilter, before: JobId | None) -> Bounds:
    """Times are those of the ids."""
    ends = [before or _GREATEST]
    if where.created_before is not None:
        ends.append(first_id_at(where.created_before))
    after = _LEAST if where.created_after is None else first_id_at(where.created_after)
    return Bounds(min(ends), after)


# ---------------------------------------------------------------- sources


async def _candidates(tx: Tx, asked: dict[str, Any], bounds: Bounds, limit: int) -> Found:
    sources = await _sources(tx, asked)
    for source in sources:
        if source.holds == asked.keys():
            return await _read(tx, source, bounds, limit)
    look = max(LOOK, limit)
    found = [await _read(tx, source, bounds, look) for source in sources]
    if "text" in asked and (few := await _with_words(tx, asked["text"], bounds)) is not None:
        found.append(few)
    return min(found, key=lambda each: (not each.all, len(each.ids) if each.all else 0, each.ids[-1:]))


async def _sources(tx: Tx, asked: dict[str, Any]) -> list[Source]:
    state = asked.get("state")
    found = [_one("tagged", tag=asked["tag"])] if "tag" in asked else []
    if state is State.DEAD:
        found += [_one("dead", state=state, **{name: asked[name]}) for name in _OF_DEAD if _indexed(name, asked)]
    else:
        found += await _calls(tx, asked)
        found += [_one("job", tenant=asked["tenant"])] if _indexed("tenant", asked) else []
        found += _by_reason(asked)
    if state in _WITH_QUEUE and "queue" in asked:
        found.append(_one(_TABLES[state], state=state, queue=asked["queue"]))
    if state is not None:
        found.append(_by_state(state))
    return found or [Source((("job", _ALWAYS, ()),), frozenset())]


def _indexed(name: str, asked: dict[str, Any]) -> bool:
    """No tenant is what most jobs have: there is no index of those."""
    return name in asked and (name != "tenant" or asked[name] != "")


def _one(table: str, **held: Any) -> Source:
    columns = {name: value for name, value in held.items() if name != "state"}
    text = " AND ".join(f"s.{name} = ?" for name in columns)
    if "tenant" in columns:
        text += " AND s.tenant <> ''"
    return Source(((table, text, tuple(columns.values())),), frozenset(held))


def _by_state(state: State) -> Source:
    match state:
        case State.SUCCEEDED:  # almost all that is done; the others are left out by the check
            return Source((("done", _ALWAYS, ()),), frozenset())
        case State.CANCELLED:
            return Source((("done", "s.cancelled", ()),), frozenset({"state"}))
        case _:
            return Source(((_TABLES[state], _ALWAYS, ()),), frozenset({"state"}))


def _by_reason(asked: dict[str, Any]) -> list[Source]:
    if "reason" not in asked:
        return []
    states = [asked["state"]] if "state" in asked else _WITH_REASON
    branches = tuple((_TABLES[state], "s.reason = ?", (asked["reason"],)) for state in states)
    return [Source(branches, frozenset({"reason", "state"} & asked.keys()))]


async def _calls(tx: Tx, asked: dict[str, Any]) -> list[Source]:
    """Jobs by queue and task, from the index that is ordered by both."""
    queue, task = asked.get("queue"), asked.get("task")
    if queue is None and task is None:
        return []
    if queue is None:
        calls = await tx.fetch("list_jobs.queues_of_task", task, MOST_MERGED + 1)
    elif task is None:
        calls = await tx.fetch("list_jobs.tasks_of_queue", queue, MOST_MERGED + 1)
    else:
        calls = await tx.fetch("list_jobs.call", queue, task)
    if len(calls) > MOST_MERGED:
        return []
    held = {name: asked[name] for name in ("queue", "task") if name in asked}
    # Two names may have one hash, so the names are compared as well.
    text = " AND ".join(("hashtext(s.queue) = ?", "hashtext(s.task) = ?", *(f"s.{name} = ?" for name in held)))
    return [Source(tuple(("job", text, (*call, *held.values())) for call in calls), frozenset(held))]


async def _read(tx: Tx, source: Source, bounds: Bounds, limit: int) -> Found:
    values: list[Any] = [*bounds, limit]
    template = tx.statement("list_jobs.source")
    parts = [
        template.format(table=table, id=_id_of(table), condition=_bound(text, given, values))
        for table, text, given in source.branches
    ]
    if not parts:
        return Found([], all=True, holds=source.holds)
    # Branches that are in order are merged, and no more is read of each than that takes.
    statement = parts[0] if len(parts) == 1 else f"({') UNION ALL ('.join(parts)}) ORDER BY 1 DESC LIMIT $3"
    rows = await tx.connection.fetch(statement, *values)
    return Found([row[0] for row in rows], all=len(rows) < limit, holds=source.holds)


async def _with_words(tx: Tx, words: list[str], bounds: Bounds) -> Found | None:
    """All dead jobs with these words, if they are few."""
    rows = await tx.fetch("list_jobs.with_words", words, LOOK + 1)
    if len(rows) > LOOK:
        return None
    ids = sorted((row[0] for row in rows if bounds.after <= row[0] < bounds.before), reverse=True)
    return Found(ids, all=True, holds=frozenset({"text", "state"}))


# ---------------------------------------------------------------- checks


async def _check(tx: Tx, found: Found, asked: dict[str, Any]) -> list[UUID]:
    """Those for which all the rest holds, too."""
    left = {name: value for name, value in asked.items() if name not in found.holds}
    if asked.get("state") is State.DEAD and any(name in _OF_DEAD or name == "text" for name in left):
        left["state"] = State.DEAD  # one look answers them all
    if not left or not found.ids:
        return found.ids
    values: list[Any] = [found.ids]
    statement = tx.statement("list_jobs.check").format(condition=_all_of(tx, left, values))
    return [row[0] for row in await tx.connection.fetch(statement, *values)]


def _all_of(tx: Tx, asked: dict[str, Any], values: list[Any]) -> str:
    """Conditions on `c.id`, one look per table; what is bound is added to the values."""
    state = asked.get("state")
    tables: dict[str, list[str]] = {}

    def need(table: str, text: str, *given: Any) -> None:
        tables.setdefault(table, []).append(_bound(text, given, values))

    if state is not None:
        need(_TABLES[state], {State.SUCCEEDED: "NOT s.cancelled", State.CANCELLED: "s.cancelled"}.get(state, _ALWAYS))
    for name, value in asked.items():
        match name:
            case "state":
                pass
            case "tag":
                need("tagged", "s.tag = ?", value)
            case "text":
                need("dead", "s.words @> ?::text[]", value)
            case "error_type" | "fingerprint":
                need("dead", f"s.{name} = ?", value)
            case "reason" if state is not None:
                need(_TABLES[state], "s.reason = ?", value)
            case "reason":
                pass
            case _:
                need("dead" if state is State.DEAD else "job", f"s.{name} = ?", value)
    has = tx.statement("list_jobs.has")
    texts = [has.format(table=table, id=_id_of(table), condition=" AND ".join(each)) for table, each in tables.items()]
    if "reason" in asked and state is None:
        anywhere = [
            has.format(table=_TABLES[each], id="job_id", condition=_bound("s.reason = ?", (asked["reason"],), values))
            for each in _WITH_REASON
        ]
        texts.append(f"({' OR '.join(anywhere)})")
    return " AND ".join(texts) or _ALWAYS


def _bound(text: str, given: Sequence[Any], values: list[Any]) -> str:
    for value in given:
        values.append(value)
        text = text.replace("?", f"${len(values)}", 1)
    return text


def _id_of(table: str) -> str:
    return "id" if table == "job" else "job_id"
