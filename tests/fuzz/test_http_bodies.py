"""Whatever is sent to the HTTP API is answered: it is done, or refused with a problem that has a name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import example, given
from tests.fuzz.examples import fuzzed_slowly
from tests.fuzz.outside import ABYSS, any_text, any_value, near_json, raw_bytes
from tests.http.served import served

from holdfast.http import HttpLimits

_FREE = HttpLimits(rate="100000/s")
_OPTIONS = ("args", "kwargs", "queue", "priority", "delay_s", "run_at", "tenant", "tags", "metadata", "key", "unique",
            "debounce", "throttle", "retry", "expires_in_s", "max_attempts", "timeout_s")  # fmt: skip
_CALL = st.fixed_dictionaries(
    {"task": st.sampled_from(["shop.mail", "shop.charge"]) | any_text},
    optional=dict.fromkeys(_OPTIONS, any_value),
)
_CALLS = st.fixed_dictionaries({"jobs": st.lists(_CALL, max_size=3) | any_value})
_BODIES = near_json(_CALL) | near_json(_CALLS) | raw_bytes
_PLACES = (
    ("POST", "/jobs"),
    ("POST", "/jobs/batch"),
    ("POST", "/dead/replay"),
    ("POST", "/dead/purge"),
    ("PATCH", "/queues/default/weights"),
    ("PATCH", "/queues/default/watermarks"),
    ("PATCH", "/queues/default/options"),
    ("PATCH", "/breakers/bank/figures"),
    ("POST", "/queues/default/purge"),
    ("PUT", "/limits/bank"),
    ("PUT", "/routes"),
    ("PUT", "/tenants/acme/weight"),
    ("POST", "/routing/explain"),
)
_LONG = b'{"task": "shop.mail", "args": [' + b"9" * 5_000 + b"]}"


@fuzzed_slowly
@given(st.lists(st.tuples(st.sampled_from(_PLACES), _BODIES), max_size=8))
@example([(("POST", "/jobs"), b"[" * ABYSS), (("POST", "/jobs"), _LONG)])
def test_every_body_is_answered_by_name(requests: list[tuple[tuple[str, str], bytes]]) -> None:
    async def ask() -> None:
        async with served(limits=_FREE) as api, api.client(await api.key()) as client:
            for (method, place), body in requests:
                answer = await client.request(method, place, content=body, headers={"Content-Type": "application/json"})
                assert answer.status_code < 500, (method, place, body[:200], answer.text)
                if answer.is_error:
                    said: dict[str, Any] = json.loads(answer.content)
                    assert said["type"], answer.text
                    assert said["status"] == answer.status_code

    asyncio.run(ask())
