"""What a job's metadata says of its trace, and what its runs make of it."""

from __future__ import annotations

import pytest

from holdfast.core.trace import TraceIds, headers_of, parse_traceparent, trace_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TEXT = f"00-{TRACE}-{SPAN}-01"


def test_a_trace_travels_from_the_call_to_the_run() -> None:
    assert trace_of(headers_of({"traceparent": TEXT, "order": 17})) == TraceIds(TRACE, SPAN)


def test_a_later_version_of_the_format_is_read_as_far_as_it_is_known() -> None:
    assert parse_traceparent(f"cc-{TRACE}-{SPAN}-01-what-comes") == TraceIds(TRACE, SPAN)


@pytest.mark.parametrize(
    "given",
    [None, 5, "", "00", TEXT.upper(), f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
     TEXT + "\n", TEXT + "-" + "x" * 500, [TEXT]],
)  # fmt: skip
def test_what_is_no_traceparent_goes_nowhere(given: object) -> None:
    assert headers_of({"traceparent": given}) is None
    assert parse_traceparent(given) is None


@pytest.mark.parametrize("headers", [None, b"", b"[]", b"{", b"\xff", b'{"traceparent": 5}', b"[" * 100_000])
def test_headers_that_are_not_ours_name_no_trace(headers: bytes | None) -> None:
    assert trace_of(headers) is None
