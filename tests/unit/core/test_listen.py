"""Where to listen, as it is written in a setting."""

from __future__ import annotations

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.urls import parse_listen


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("worker-3:80", ("worker-3", 80)),
    ],
)
def test_host_and_port(text: str, meant: tuple[str, int]) -> None:
    assert parse_listen(text) == meant


@pytest.mark.parametrize("text", ["", ":9464", "tcp://10.0.0.1", "host:", "65536", "-1", "9464x", "٣", "1" * 5000])
def test_what_is_no_port_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a port to listen at"):
        parse_listen(text)
