"""Keys as a server meets them: expired, revoked and rotated ones, and when they were last used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from tests.http.served import Scene, served
from tests.integration.scene import scene

from holdfast import InvalidOptions
from holdfast.core.api_key import check_key_name
from holdfast.http.keyring import Keyring

PATIENCE_S = 20.0


async def _status(api: Scene, key: str) -> int:
    async with api.client(key) as client:
        return (await client.get("/jobs")).status_code


async def _until(asked: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await asked():
            await asyncio.sleep(0.02)


@scene
async def test_a_revoked_key_is_refused_within_a_second_or_two() -> None:
    async with served() as api:
        made = await api.hf.keys.create("x", scopes=["read"])
        assert await _status(api, made.text) == 200
        await api.hf.keys.revoke(made.key.id)

        async def refused() -> bool:
            return await _status(api, made.text) == 401

        await _until(refused)


@scene
async def test_an_expired_key_is_refused() -> None:
    async with served() as api:
        made = await api.hf.keys.create("x", scopes=["read"], expires=1)
        assert await _status(api, made.text) == 200

        async def refused() -> bool:
            return await _status(api, made.text) == 401

        await _until(refused)


@scene
async def test_a_rotated_key_opens_with_both_secrets_during_its_grace() -> None:
    async with served() as api:
        made = await api.hf.keys.create("x", scopes=["read"])
        graceful = await api.hf.keys.rotate(made.key.id, grace=timedelta(hours=1))
        assert [await _status(api, text) for text in (made.text, graceful.text)] == [200, 200]
        at_once = await api.hf.keys.rotate(made.key.id)

        async def taken_up() -> bool:
            return await _status(api, graceful.text) == 401

        await _until(taken_up)
        assert [await _status(api, text) for text in (made.text, at_once.text)] == [401, 200]


@scene
async def test_the_right_id_with_another_secret_is_refused_and_noted() -> None:
    async with served() as api:
        right, other = await api.hf.keys.create("x", scopes=["read"]), await api.hf.keys.create("y", scopes=["read"])
        forged = f"hf_{right.key.id}_{other.text.rpartition('_')[2]}"
        assert await _status(api, forged) == 401
        assert await _status(api, other.text) == 200
        await api.app.server.close()
        seen = {key.id: key for key in await api.hf.keys.list()}
        assert (seen[right.key.id].used_at, seen[right.key.id].failed_at is None) == (None, False)
        assert (seen[other.key.id].used_at is None, seen[other.key.id].failed_at) == (False, None)


@scene
async def test_uses_are_written_down_now_and_then_and_not_at_every_request() -> None:
    async with served() as api:
        moment = 0.0
        ring = Keyring(api.hf, monotonic=lambda: moment)
        written = 0
        note_uses = api.hf.keys.note_uses

        async def counted(uses: object) -> None:
            nonlocal written
            written += 1
            await note_uses(uses)  # type: ignore[arg-type]

        api.hf.keys.note_uses = counted  # type: ignore[method-assign]
        key = await api.key("read")
        for _ in range(100):
            moment += 0.5
            assert await ring.find(key) is not None
            await asyncio.sleep(0)
        await ring.close()
        assert written == 2, "after thirty of fifty seconds, and at the end"


@scene
async def test_a_key_is_looked_up_once_a_second() -> None:
    async with served() as api:
        moment = 0.0
        ring = Keyring(api.hf, monotonic=lambda: moment)
        asked = 0
        get = api.hf.keys.get

        async def counted(key_id: str) -> object:
            nonlocal asked
            asked += 1
            return await get(key_id)

        api.hf.keys.get = counted  # type: ignore[method-assign,assignment]
        key = await api.key("read")
        for _ in range(100):
            moment += 0.1
            await ring.find(key)
        assert 9 <= asked <= 11
        await ring.find("no key at all")
        assert asked <= 11, "what cannot be a key is not asked for"
        await ring.close()


@pytest.mark.parametrize("name", ["a\nroot: key", "\x1b[2J", "a\u202eb", "a\u2028b", "\x7f"])
def test_a_key_is_called_nothing_that_could_pass_for_another_line(name: str) -> None:
    with pytest.raises(InvalidOptions, match="printable"):
        check_key_name(name)
