"""What others may have put into a stream of Redis: a job's id, a wake-up, or nothing of ours; none of it is kept."""

from __future__ import annotations

import asyncio
from uuid import UUID

import hypothesis.strategies as st
from hypothesis import given
from tests.fuzz.examples import fuzzed_slowly
from tests.redis.test_connection import Watched

from holdfast.core.fairness import Lane
from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown

_LANE = Lane("mail", 5)
_FIELDS = st.sampled_from([b"j", b"", b"J", b"id", b"\x00"]) | st.binary(max_size=20)
_CONTENTS = st.just(b"") | st.binary(min_size=16, max_size=16) | st.binary(max_size=40)
_ENTRIES = st.lists(st.lists(st.tuples(_FIELDS, _CONTENTS), min_size=1, max_size=3), min_size=1, max_size=20)


@fuzzed_slowly
@given(_ENTRIES)
def test_whatever_is_in_a_stream_is_read_and_dealt_with(
    own_redis: LocalRedis, entries: list[list[tuple[bytes, bytes]]]
) -> None:
    async def read() -> None:
        own_redis.ask("FLUSHALL")
        transport = Watched(own_redis.url)
        await transport.open()
        stream = transport._keys.stream(_LANE)
        line = transport._connection.line()
        for fields in entries:
            await line.ask("XADD", stream, "*", *(word for pair in fields for word in pair), key=stream)
        consumer = transport.consumer("somebody", wake=lambda: None)
        found = []
        while True:
            some, more = await consumer.read({_LANE: 7})
            found += some
            consumer.ack(some)
            if not some and not more:
                break
        ours = [fields[0][1] for fields in entries if len(fields) == 1 and fields[0][0] == b"j"]
        ids = [UUID(bytes=content) if content else None for content in ours if len(content) in (0, 16)]
        assert [each.job_id for each in found] == ids
        assert not [event for event in transport.told if isinstance(event, TransportDown)]
        await consumer.close()
        assert await line.ask("XLEN", stream, key=stream) == 0
        await transport.close()

    asyncio.run(read())
