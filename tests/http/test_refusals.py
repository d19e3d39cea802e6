"""Every limit and every refusal, by what a client sees."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.http.served import Scene, served
from tests.integration.scene import scene

from holdfast.http import HttpLimits
from holdfast.http.door import SAFE_HEADERS
from holdfast.http.rates import place_of

JSON = {"Content-Type": "application/json"}


def _kind(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == answer.status_code
    return answer.status_code, said["type"].removeprefix("urn:holdfast:problem:")


async def _post(client: httpx.AsyncClient, content: Any, **headers: str) -> httpx.Response:
    return await client.post("/jobs", content=content, headers=JSON | headers)


def _call(text: str) -> bytes:
    """A submission with this text as its argument."""
    return b'{"task": "shop.mail", "args": [' + text.encode() + b"]}"


# ---------------------------------------------------------------- bodies


@scene
async def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b" " * 1024

    async with served(limits=HttpLimits(body=10_000)) as api, api.client(await api.key("submit")) as client:
        assert _kind(await _post(client, b" " * 10_001)) == (413, "body-too-large")
        answer = await _post(client, endless())
        assert _kind(answer) == (413, "body-too-large")
        assert read < 20
        assert answer.json()["limit"] == 10_000
        assert (await _post(client, _call('"bob"').ljust(10_000))).status_code == 202
        for lie in ("-5", "1e9", "9" * 30, "ten"):
            request = client.build_request("POST", "/jobs", content=b"{}", headers=JSON | {"Content-Length": lie})
            assert (await client.send(request)).status_code == 413


@scene
async def test_many_may_take_more_than_one() -> None:
    limits = HttpLimits(body=1_000, batch_body=100_000)
    async with served(limits=limits) as api, api.client(await api.key("submit")) as client:
        items = [{"task": "shop.mail", "args": ["x" * 100]}] * 100
        assert (await client.post("/jobs/batch", json={"items": items})).json()["accepted"] == 100
        assert _kind(await client.post("/jobs/batch", json={"items": items * 9})) == (413, "body-too-large")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/problem+json"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
    ],
)
def test_another_kind_of_body_is_refused(headers: dict[str, str]) -> None:
    @scene
    async def check() -> None:
        async with served() as api, api.client(await api.key("submit")) as client:
            assert _kind(await _post(client, _call('"bob"'), **headers)) == (415, "unsupported-media-type")
            assert (
                await _post(client, _call('"bob"'), **{"Content-Type": "application/json;charset=UTF-8"})
            ).is_success

    check()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b'{"task": "a"} x', "is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (_call("NaN"), "NaN is not JSON"),
        (_call("-Infinity"), "Infinity is not JSON"),
        (_call("1e999"), "too large for a float"),
        (_call("9" * 5_000), "an integer has 5,000 digits"),
        (_call(r'"\u0000"'), "NUL character"),
        (_call(r'"\ud800"'), "half a surrogate pair"),
        (_call("[" * 100 + "]" * 100), "nested more than 64 levels deep"),
        (_call("[" * 100_000), "nested more than 64 levels deep"),
        (b'{"task": "a", "task": "b"}', "two members 'task'"),
        (_call('"' + "x" * 2_001 + '"'), "a text has 2,001 characters, 2,000 are allowed"),
        (
            b'{"task": "a", "kwargs": {' + b", ".join(b'"k%d": 1' % n for n in range(101)) + b"}}",
            "more than 100 members",
        ),
    ],
)
def test_a_body_that_cannot_be_kept_is_refused_before_anything_is_stored(body: bytes, words: str) -> None:
    @scene
    async def check() -> None:
        limits = HttpLimits(keys=100, string=2_000)
        async with served(limits=limits) as api, api.client(await api.key("submit")) as client:
            answer = await _post(client, body)
            assert _kind(answer) == (422, "invalid-json")
            assert words in answer.json()["detail"]
            assert await api.hf.jobs.list() == []

    check()


@scene
async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def never() -> AsyncIterator[bytes]:
        yield b'{"task":'
        await _forever()

    async with served(limits=HttpLimits(body_s=0.05)) as api, api.client(await api.key("submit")) as client:
        assert _kind(await _post(client, never())) == (408, "body-too-slow")


async def _forever() -> None:
    await asyncio.Event().wait()


@scene
async def test_arguments_that_are_too_large_for_a_job_are_refused() -> None:
    async with served(settings={"payload_limit": 2_000}) as api, api.client(await api.key("submit")) as client:
        answer = await _post(client, _call('"' + "x" * 3_000 + '"'))
        assert _kind(answer) == (422, "invalid-arguments")
        assert "the limit is 2,000" in answer.json()["detail"]


# ---------------------------------------------------------------- who asks, and how often


@scene
async def test_whoever_asks_too_often_is_told_to_wait() -> None:
    limits = HttpLimits(rate="3/h")
    async with served(limits=limits) as api:
        async with api.client(await api.key("read")) as client:
            codes = [(await client.get("/jobs")).status_code for _ in range(5)]
            assert codes == [200, 200, 200, 429, 429]
            refused = await client.get("/jobs")
            assert _kind(refused) == (429, "too-many-requests")
            assert 1 < int(refused.headers["Retry-After"]) <= 1200
        async with api.client(await api.key("read")) as client:
            assert (await client.get("/jobs")).status_code == 200, "another key is another bucket"


@scene
async def test_whoever_fails_too_often_is_not_listened_to_for_a_while() -> None:
    async with served(limits=HttpLimits(failed_rate="3/h")) as api:
        right, wrong = await api.key("read"), "hf_AAAAAAAAAAAA_" + "a" * 43
        async with api.client(regular := await api.key("read")) as client:
            assert (await client.get("/jobs")).status_code == 200
        async with api.client(wrong) as client:
            codes = [(await client.get("/jobs")).status_code for _ in range(5)]
            assert codes == [401, 401, 401, 429, 429]
        async with api.client(right) as client:
            assert (await client.get("/jobs")).status_code == 429, "guessing gains nothing by guessing right"
        async with api.client(regular) as client:
            assert (await client.get("/jobs")).status_code == 200, "whoever was here before goes on"
        elsewhere = Scene(api.hf, api.app, address="192.0.2.99")
        async with elsewhere.client(right) as client:
            assert (await client.get("/jobs")).status_code == 200, "others are not concerned"


@scene
async def test_whoever_has_many_addresses_in_one_network_is_one() -> None:
    async with served(limits=HttpLimits(failed_rate="2/h")) as api:
        codes = []
        for address in ("2001:db8::1", "2001:db8::2", "2001:db8::ffff:3", "2001:db8:0:1::1"):
            async with Scene(api.hf, api.app, address=address).client("wrong") as client:
                codes.append((await client.get("/jobs")).status_code)
        assert codes == [401, 401, 429, 401]
    assert place_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert place_of("fe80::1%eth0") == "fe80::"
    assert len(place_of("x" * 10_000)) == len(place_of(":" * 10_000)) == 64


@scene
async def test_a_page_of_another_site_is_refused() -> None:
    async with served() as api:
        key = await api.key("read")
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Origin": "http://other.api"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
        ):
            async with api.client(key, **headers) as client:
                assert _kind(await client.get("/jobs")) == (403, "cross-site")
        for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "http://api"}):
            async with api.client(key, **headers) as client:
                answer = await client.get("/jobs")
                assert answer.status_code == 200
                assert not [name for name in answer.headers if name.startswith("access-control")]
        async with api.client(key, Origin="https://evil.example") as client:
            preflight = await client.options("/jobs", headers={"Access-Control-Request-Method": "POST"})
            assert (preflight.status_code, "access-control-allow-origin" in preflight.headers) == (405, False)


@scene
async def test_a_page_of_a_named_site_is_let_in() -> None:
    async with served(origins=["https://shop.example"]) as api:
        named = {"Origin": "https://shop.example", "Sec-Fetch-Site": "cross-site"}
        async with api.client(await api.key("read"), **named) as client:
            answer = await client.get("/jobs")
            assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, "https://shop.example")
            preflight = await client.options(
                "/jobs",
                headers={"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"},
            )
            assert preflight.status_code == 200
        async with api.client(await api.key("read"), Origin="https://shop.example.evil") as client:
            assert (await client.get("/jobs")).status_code == 403


@scene
async def test_every_answer_is_kept_out_of_caches_and_frames() -> None:
    async with served() as api, api.client(await api.key("read")) as client:
        for answer in (
            await client.get("/jobs"),
            await client.get("/jobs/x"),
            await client.get("/nothing"),
            await client.delete("/jobs"),
            await client.post("/jobs", json={}),
        ):
            assert answer.headers.items() >= {name.lower(): value for name, value in SAFE_HEADERS.items()}.items()
            assert answer.headers["X-Request-Id"]
        assert _kind(await client.get("/nothing")) == (404, "not-found")
        answer = await client.delete("/jobs")
        assert _kind(answer) == (405, "method-not-allowed")
        assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "POST"}


# ---------------------------------------------------------------- what is not told


@scene
async def test_what_was_sent_is_in_no_log_and_in_no_refusal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with served() as api, api.client(key := await api.key("submit")) as client:
        for body in (
            {"task": "shop.mail", "args": ["the-secret"]},
            {"task": "shop.add", "args": ["the-secret"]},
            {"task": "shop.mail", "kwargs": {"to": "the-secret", "x": "the-secret"}},
            {"task": "shop.mail", "args": ["a"], "delay_s": "the-secret"},
        ):
            answer = await client.post("/jobs", json=body)
            assert "the-secret" not in answer.text
    assert "the-secret" not in caplog.text
    assert key not in caplog.text


@scene
async def test_a_failure_of_ours_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as api, api.client(await api.key("read")) as client:
        words = "-".join(["the", "secret"])

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError(words)

        api.hf.jobs.list = broken  # type: ignore[method-assign,assignment]
        answer = await client.get("/jobs")
        assert _kind(answer) == (500, "unexpected")
        assert "the-secret" not in answer.text + caplog.text
        assert answer.headers["X-Request-Id"] in caplog.text
        assert "RuntimeError" in caplog.text


@scene
async def test_problems_can_be_read_by_any_program() -> None:
    async with served() as api, api.client() as client:
        said = json.loads((await client.get("/jobs")).content)
        assert set(said) == {"type", "title", "status", "detail", "remedy"}


@scene
async def test_of_two_keys_none_is_believed() -> None:
    async with served(anyone=["read"]) as api:
        good, bad = f"Bearer {await api.key()}", "Bearer hf_nobody"
        async with api.client() as client:
            for headers in ((good, bad), (bad, good), (good, good), (good, ""), ("", "")):
                sent = [("Authorization", each) for each in headers]
                answer = await client.get("/tasks", headers=sent)
                assert (answer.status_code, answer.json()["type"]) == (401, "urn:holdfast:problem:unauthenticated")
                assert "more than once" in answer.json()["detail"]
            assert (await client.get("/tasks", headers=[("Authorization", good)])).status_code == 200
            assert (await client.get("/tasks")).status_code == 200, "without any, whoever comes is anyone"


@scene
async def test_the_document_and_the_health_of_the_process_carry_the_headers_of_every_answer() -> None:
    async with served() as api, api.client(await api.key()) as client:
        ordinary = await client.get("/tasks")
        for path in ("/openapi.json", "/health/live", "/health/ready"):
            answer = await client.get(f"http://api{path}")
            assert {name: answer.headers.get(name) for name in SAFE_HEADERS} == SAFE_HEADERS
            assert {name: ordinary.headers.get(name) for name in SAFE_HEADERS} == SAFE_HEADERS
