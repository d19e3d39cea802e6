"""Requests that are made to hurt: what they may cost, and what they may learn."""

from __future__ import annotations

import json
import time

import pytest
from tests.http.served import V1, served
from tests.integration.scene import scene

from holdfast.http import HttpLimits
from holdfast.http.door import SAFE_HEADERS

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "", "http://api@evil.example", "ftp://api"])
def test_an_origin_that_is_none_is_another_site(origin: str) -> None:
    @scene
    async def check() -> None:
        async with served() as api, api.client(await api.key(), Origin=origin) as client:
            assert (await client.get("/tasks")).status_code == 403

    check()


@scene
async def test_nobody_is_sent_elsewhere_by_a_slash() -> None:
    async with served() as api, api.client(await api.key(), Host="evil.example") as client:
        for path in ("/jobs/", "/queues/default/"):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers.get("Location")) == (404, None)
            assert answer.headers.items() >= {(name.lower(), value) for name, value in SAFE_HEADERS.items()}
        elsewhere = await client.get(str(client.base_url).removesuffix(f"{V1}/") + "/health/live/")
        assert elsewhere.status_code == 404


@pytest.mark.parametrize("body", [b"[]," * 200_000, b"[]" * 200_000, b'[]"",' * 100_000, b'"\\"",' * 200_000])
def test_a_body_of_very_many_parts_is_refused_before_it_is_built(body: bytes) -> None:
    @scene
    async def check() -> None:
        limits = HttpLimits(parts=100_000)
        async with served(limits=limits) as api, api.client(await api.key("submit")) as client:
            answer = await client.post("/jobs", content=b'{"task": "shop.mail", "args": [' + body, headers=JSON)
            assert answer.status_code == 422
            assert "more than 100,000 parts" in answer.json()["detail"]

    check()


@scene
async def test_what_is_within_a_text_is_no_part_of_the_body() -> None:
    async with served(limits=HttpLimits(parts=100)) as api, api.client(await api.key("submit")) as client:
        for text in ("[{," * 1_000, '"' * 1_000, '\\",' * 1_000):
            assert (await client.post("/jobs", json={"task": "shop.mail", "args": [text]})).status_code == 202


@scene
async def test_one_member_given_twice_among_very_many_is_found_at_once() -> None:
    members = ",".join(f'"k{number:05}":0' for number in range(49_000))
    body = f'{{"task": "shop.add", "kwargs": {{{members}, "z": 1, "z": 2}}}}'
    async with served() as api, api.client(await api.key("submit")) as client:
        began = time.process_time()
        answer = await client.post("/jobs", content=body, headers=JSON)
        assert "two members 'z'" in answer.json()["detail"]
        assert time.process_time() - began < 5, "each was compared with each"


@pytest.mark.parametrize("text", ["s3cret\0", "s3cret\ud800"])
def test_a_refusal_repeats_nothing_of_the_arguments(text: str) -> None:
    @scene
    async def check() -> None:
        async with served() as api, api.client(await api.key("submit")) as client:
            body = json.dumps({"task": "shop.mail", "args": [text]})
            answer = await client.post("/jobs", content=body, headers=JSON)
            assert answer.status_code == 422
            assert "s3cret" not in answer.text

    check()
