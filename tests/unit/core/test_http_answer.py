"""What is read off the exceptions of HTTP clients: status and `Retry-After`, from the real libraries."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import Message
from email.utils import format_datetime
from typing import Any
from urllib.error import HTTPError

import aiohttp
import httpx
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from holdfast.core.http_answer import HttpAnswer, http_answer, retry_after_s

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC).timestamp()


def of_httpx(status: int, headers: dict[str, str]) -> Exception:
    request = httpx.Request("GET", "http://example.org")
    with pytest.raises(httpx.HTTPStatusError) as caught:
        httpx.Response(status, headers=headers, request=request).raise_for_status()
    return caught.value


def of_requests(status: int, headers: dict[str, str]) -> Exception:
    response = requests.Response()
    response.status_code = status
    response.headers.update(headers)
    with pytest.raises(requests.HTTPError) as caught:
        response.raise_for_status()
    return caught.value


def of_aiohttp(status: int, headers: dict[str, str]) -> Exception:
    url, none = URL("http://example.org"), CIMultiDictProxy(CIMultiDict[str]())
    request = aiohttp.RequestInfo(url, "GET", none, url)
    return aiohttp.ClientResponseError(request, (), status=status, headers=CIMultiDict(headers))


def of_urllib(status: int, headers: dict[str, str]) -> Exception:
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return HTTPError("http://example.org", status, "no", message, io.BytesIO())


CLIENTS = pytest.mark.parametrize("made_by", [of_httpx, of_requests, of_aiohttp, of_urllib])
Made = Callable[[int, dict[str, str]], Exception]


def asked_s(exc: Exception) -> float | None:
    answer = http_answer(exc)
    assert answer is not None
    return retry_after_s(answer, now=lambda: NOW)


@CLIENTS
@pytest.mark.parametrize("status", [400, 429, 503])
def test_the_status_is_read_off_every_client(made_by: Made, status: int) -> None:
    answer = http_answer(made_by(status, {}))
    assert answer is not None
    assert answer.status == status
    assert retry_after_s(answer, now=lambda: NOW) is None


@CLIENTS
@pytest.mark.parametrize("header", ["Retry-After", "retry-after"])
def test_seconds_are_read_off_every_client(made_by: Made, header: str) -> None:
    assert asked_s(made_by(429, {header: " 17 "})) == 17.0


@CLIENTS
def test_a_date_is_seconds_from_now_or_from_the_answers_own_date(made_by: Made) -> None:
    in_a_minute = format_datetime(datetime.fromtimestamp(NOW + 60, UTC), usegmt=True)
    sent = format_datetime(datetime.fromtimestamp(NOW + 20, UTC), usegmt=True)
    assert asked_s(made_by(503, {"Retry-After": in_a_minute})) == 60.0
    assert asked_s(made_by(503, {"Retry-After": in_a_minute, "Date": sent})) == 40.0
    past = format_datetime(datetime.fromtimestamp(NOW - 60, UTC), usegmt=True)
    assert asked_s(made_by(503, {"Retry-After": past})) == 0.0


@pytest.mark.parametrize("text", ["", "soon", "-5", "1e9", "9" * 40, "inf", "nan", "Wed, 99 Nov 2026 99:99:99 GMT"])
def test_what_is_neither_seconds_nor_a_date_is_as_if_it_were_not_there(text: str) -> None:
    assert asked_s(of_httpx(429, {"Retry-After": text})) is None


@given(st.one_of(st.text(), st.binary(), st.none(), st.integers(), st.datetimes().map(format_datetime)))
def test_no_header_makes_it_raise_or_gives_a_negative_time(value: Any) -> None:
    seconds = retry_after_s(HttpAnswer(429, {"Retry-After": value, "Date": value}), now=lambda: NOW)
    assert seconds is None or seconds >= 0


class Moody(Exception):
    @property
    def response(self) -> object:
        raise RuntimeError("not today")


class Loose(Exception):
    status = 429
    code = 429
    status_code = 429


@pytest.mark.parametrize("exc", [ValueError(), SystemExit(429), Moody(), Loose(), requests.ConnectionError()])
def test_other_exceptions_stand_for_no_answer(exc: BaseException) -> None:
    assert http_answer(exc) is None
