"""In an app of somebody else's, in one line; and what is told where the extra is missing."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from tests.http.served import make_app
from tests.integration.scene import scene

from holdfast.http import asgi, router
from holdfast.http.serving import address_of, bind

ADD = {"task": "shop.add", "args": [1]}


@scene
async def test_it_is_mounted_in_an_app_in_one_line() -> None:
    hf = make_app(":memory:")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with hf:
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount("/jobs", asgi(hf))
    async with app.router.lifespan_context(app):
        key = (await hf.keys.create("x", scopes=["submit", "read"])).text
        own = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x", headers=own) as client:
            answer = await client.post("/jobs/api/v1/jobs", json=ADD)
            assert answer.headers["Location"] == f"/jobs/api/v1/jobs/{answer.json()['id']}"
            assert (await client.get(answer.headers["Location"])).json()["id"] == answer.json()["id"]
            assert (await client.get("/jobs/api/v1/nothing")).json()["type"] == "urn:holdfast:problem:not-found"
            wrong = await client.delete("/jobs/api/v1/jobs")
            assert (wrong.status_code, wrong.headers["Allow"]) == (405, "GET, POST")
            assert (await client.get("/jobs/openapi.json")).status_code == 200


@scene
async def test_its_routes_are_included_behind_the_same_door() -> None:
    hf = make_app(":memory:")
    app = FastAPI()
    app.include_router(router(hf), prefix="/queue")

    @app.get("/own")
    async def own_route() -> str:
        return "mine"

    async with hf:
        key = (await hf.keys.create("x", scopes=["submit", "read"])).text
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            assert (await client.get("/queue/api/v1/jobs")).status_code == 401
            client.headers["Authorization"] = f"Bearer {key}"
            answer = await client.post("/queue/api/v1/jobs", json=ADD)
            assert (answer.status_code, answer.headers["X-Frame-Options"]) == (202, "DENY")
            assert answer.headers["Location"] == f"/queue/api/v1/jobs/{answer.json()['id']}"
            refused = await client.post("/queue/api/v1/jobs", json={"task": 5})
            assert refused.headers["Content-Type"] == "application/problem+json"
            assert (await client.get("/own")).json() == "mine", "others are as they were"
            document = (await client.get("/openapi.json")).json()
            assert "/queue/api/v1/jobs" in document["paths"]


@scene
async def test_served_by_itself_it_opens_the_app() -> None:
    hf = make_app(":memory:")
    app = asgi(hf)
    async with app.router.lifespan_context(app):
        assert hf.is_open
    assert not hf.is_open


@scene
async def test_while_the_app_is_not_open_it_says_so() -> None:
    app = asgi(make_app(":memory:"))
    key = "hf_AAAAAAAAAAAA_" + "a" * 43
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.get("/api/v1/jobs", headers={"Authorization": f"Bearer {key}"})
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:holdfast:problem:shutting-down")
        assert "Retry-After" in answer.headers


def test_without_the_extra_it_is_named() -> None:
    script = "import sys; sys.modules['fastapi'] = None; import holdfast.http"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "holdfast.http needs fastapi, which is not installed: pip install 'holdfast[http]'" in ended.stderr


def test_nobody_else_imports_it() -> None:
    script = (
        "import sys, holdfast, holdfast.cli.commands; sys.exit('fastapi' in sys.modules or 'uvicorn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@scene
async def test_the_app_of_the_guide_starts_and_serves() -> None:
    """With what a server hands to its lifespan, which an app by itself does not."""
    guide = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text("utf-8")
    [code] = [each for each in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "FastAPI(" in each]
    names: dict[str, Any] = {}
    exec(code, names)
    hf = names["hf"]
    with bind("127.0.0.1", 0) as place:
        config = uvicorn.Config(names["app"], log_config=None, lifespan="on")
        server = _Quiet(config)
        serving = asyncio.create_task(server.serve([place]))
        await asyncio.wait([serving, asyncio.create_task(server.is_open.wait())], return_when=asyncio.FIRST_COMPLETED)
        assert server.started
        key = (await hf.keys.create("x", scopes=["read"])).text
        async with httpx.AsyncClient(base_url=address_of(place), headers={"Authorization": f"Bearer {key}"}) as client:
            assert (await client.get("/jobs/api/v1/tasks")).status_code == 200
            assert (await client.get("/api/v1/tasks")).status_code == 200
        server.should_exit = True
        await serving
        assert not hf.is_open


class _Quiet(uvicorn.Server):
    """Leaves signals to the tests, and says when it is open."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_open = asyncio.Event()

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:  # it has told why in its log
            self.should_exit = True
        finally:
            self.is_open.set()
