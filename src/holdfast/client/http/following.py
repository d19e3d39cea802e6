"""Follows a job from afar: stream after stream, until it has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

import httpx

from holdfast.client.http.event_reader import EventReader
from holdfast.client.http.wire import AGAIN, LONGEST_REST_S, job_of, path_of, raise_problem, retry_after_s, value_of
from holdfast.core.errors import ApiRefused, JobNotFound
from holdfast.core.job import JobId, JobInfo

_REST_S: Final = 0.1


async def follow(http: httpx.AsyncClient, job_id: JobId | str, *, retries: int) -> AsyncIterator[JobInfo]:
    """Every change of a job that can be seen, the last one its ending."""
    path, seen, failures, barren = f"{path_of(job_id)}/events", "", 0, 0
    while True:
        began, has_news = time.monotonic(), False
        try:
            headers = {"Last-Event-ID": seen} if seen else {}
            async with http.stream("GET", path, headers=headers) as answer:
                if answer.status_code == 204:
                    return
                if answer.status_code in AGAIN and failures < retries:
                    failures += 1  # a server that stops, or the proxy before it
                    await asyncio.sleep(min(LONGEST_REST_S, retry_after_s(answer.headers)))
                    continue
                if answer.status_code != 200:
                    raise_problem(answer.status_code, await answer.aread(), answer.headers)
                reader, failures = EventReader(), 0
                async for chunk in answer.aiter_bytes():
                    for event in reader.feed(chunk):
                        if event.kind == "reconnect":
                            continue
                        if event.kind == "gone":
                            raise JobNotFound(job_id)
                        has_news = has_news or event.id != seen
                        seen = event.id
                        yield job_of(value_of(answer.status_code, event.data))
                        if event.kind == "ended":
                            return
        except httpx.TransportError as error:
            failures += 1
            if failures > retries:
                raise ApiRefused(f"the server cannot be reached: {type(error).__name__}") from error
        # One stream follows another at once, but for those that end as soon as they begin: there may be no end of them.
        barren = 0 if has_news or time.monotonic() - began > LONGEST_REST_S else barren + 1
        if rests := max(failures, barren):
            await asyncio.sleep(min(LONGEST_REST_S, _REST_S * 2 ** min(rests, 10)))
