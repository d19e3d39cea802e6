"""Messages are found in a stream however the network cuts it."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st
from tests.proxies.wire import Frames, Statements


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


@given(bodies=st.lists(st.binary(max_size=20)), cuts=st.lists(st.integers(1, 30), min_size=1))
def test_messages_come_out_whole_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    sent = [message(b"d", body) for body in bodies]
    stream, frames, found = b"".join(sent), Frames(), []
    for turn in range(len(stream)):
        size = cuts[turn % len(cuts)]
        found += list(frames.feed(stream[:size]))
        stream = stream[size:]
    assert found == sent


def test_a_prepared_statement_goes_by_its_name_until_it_is_closed() -> None:
    statements = Statements()
    assert statements.text(message(b"P", b"s1\0SELECT 1\0\0\0")) is None
    assert statements.text(message(b"P", b"\0SELECT 2\0\0\0")) is None
    assert statements.text(message(b"B", b"\0s1\0\0\0\0\0\0\0")) is None
    assert statements.text(message(b"E", b"\0\0\0\0\0")) == "SELECT 1"
    statements.text(message(b"B", b"p\0\0\0\0\0\0\0\0"))
    assert statements.text(message(b"E", b"p\0\0\0\0\0")) == "SELECT 2"
    statements.text(message(b"C", b"Ss1\0"))
    statements.text(message(b"B", b"\0s1\0\0\0\0\0\0\0"))
    assert statements.text(message(b"E", b"\0\0\0\0\0")) == ""
    assert statements.text(message(b"Q", b"COMMIT;\0")) == "COMMIT;"
