"""TLS: the certificate is checked, and one that is not to be trusted is refused with what to do about it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until
from tests.redis.test_connection import Watched, refusal

from holdfast.core.errors import ConfigError
from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportRefused, TransportUp
from holdfast.transports.redis_streams import parse_address

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 2, 1, tzinfo=UTC)


class Certificate(NamedTuple):
    """Files: the certificate with its key, and who has signed it."""

    shown: Path
    signer: Path


def certificate(place: Path, *dates: datetime) -> Certificate:
    """For localhost, by an authority of its own; valid from now on, or between these dates."""
    place.mkdir()
    authority, made = trustme.CA(), Certificate(place / "shown.pem", place / "signer.pem")
    not_before, not_after = dates or (None, None)
    leaf = authority.issue_cert("localhost", not_before=not_before, not_after=not_after)
    leaf.private_key_and_cert_chain_pem.write_to_path(str(made.shown))
    authority.cert_pem.write_to_path(str(made.signer))
    return made


class Gate:
    """Speaks TLS before a Redis that does not; `show` changes the certificate for whoever comes next."""

    def __init__(self, redis: LocalRedis) -> None:
        self.redis = redis
        self.port = 0
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._open: set[asyncio.StreamWriter] = set()

    def show(self, own: Certificate) -> None:
        self._context.load_cert_chain(own.shown)

    def ask_for_one_by(self, signer: Path) -> None:
        """Whoever comes has to show a certificate, too."""
        self._context.load_verify_locations(signer)
        self._context.verify_mode = ssl.CERT_REQUIRED

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    @contextlib.asynccontextmanager
    async def standing(self, shown: Certificate) -> AsyncIterator[Gate]:
        self.show(shown)
        async with await asyncio.start_server(self._through, "127.0.0.1", 0, ssl=self._context) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield self

    def url(self, host: str = "localhost", *, trusted: Certificate | None = None) -> str:
        trust = "" if trusted is None else f"?cafile={trusted.signer}"
        return f"rediss://:{self.redis.password}@{host}:{self.port}/0{trust}"

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self.redis.port)
        self._open.add(writer)

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    target.write(data)
            finally:
                target.close()

        await asyncio.gather(pump(reader, forth), pump(back, writer), return_exceptions=True)
        self._open.discard(writer)


@scene
async def test_tls_is_spoken_to_a_server_with_a_certificate_to_trust(
    own_redis: LocalRedis, tmp_path: Path, postgres_tables: PostgresSchema
) -> None:
    own = certificate(tmp_path / "own")
    async with Gate(own_redis).standing(own) as gate:
        here = Shop(postgres_tables, gate.url(trusted=own), poll_s=60.0, pooled=True)
        async with here.hf, here.hf.worker():
            for n in range(5):
                await here.enqueue(n)
                await here.until_ran(n + 1)
        assert here.told(TransportDown) == []


@scene
async def test_an_unknown_signer_is_refused_with_the_remedy(own_redis: LocalRedis, tmp_path: Path) -> None:
    async with Gate(own_redis).standing(certificate(tmp_path / "own")) as gate:
        said = await refusal(gate.url())
        assert f"the Redis at localhost:{gate.port}/0 cannot be used" in said
        assert "its certificate is not trusted (" in said
        assert "?cafile=/etc/ca.pem" in said
        assert own_redis.password not in said


@scene
async def test_an_expired_certificate_is_refused_with_the_remedy(own_redis: LocalRedis, tmp_path: Path) -> None:
    old = certificate(tmp_path / "old", *_LONG_AGO)
    async with Gate(own_redis).standing(old) as gate:
        said = await refusal(gate.url(trusted=old))
        assert "(certificate has expired): renew it on the server" in said


@scene
async def test_a_certificate_for_another_name_is_refused_with_the_remedy(own_redis: LocalRedis, tmp_path: Path) -> None:
    own = certificate(tmp_path / "own")
    async with Gate(own_redis).standing(own) as gate:
        said = await refusal(gate.url("127.0.0.1", trusted=own))
        assert "certificate is not valid for '127.0.0.1'): write a name in the Redis URL" in said


@pytest.mark.parametrize("scheme", ["rediss+sentinel", "rediss+cluster"])
@scene
async def test_sentinels_and_clusters_are_no_more_trusted(own_redis: LocalRedis, tmp_path: Path, scheme: str) -> None:
    async with Gate(own_redis).standing(certificate(tmp_path / "own")) as gate:
        path = "main" if "sentinel" in scheme else ""
        said = await refusal(f"{scheme}://localhost:{gate.port},localhost:1/{path}")
        assert "its certificate is not trusted" in said


@scene
async def test_a_server_that_asks_for_a_certificate_is_shown_one(own_redis: LocalRedis, tmp_path: Path) -> None:
    server, client = certificate(tmp_path / "server"), certificate(tmp_path / "client")
    key = tmp_path / "key.pem"
    key.write_text(client.shown.read_text())
    gate = Gate(own_redis)
    gate.ask_for_one_by(client.signer)
    async with gate.standing(server):
        for shown in (f"certfile={client.shown}", f"certfile={client.shown}&keyfile={key}"):
            transport = Watched(f"{gate.url(trusted=server)}&{shown}")
            await transport.open()
            assert (transport.is_up, transport.told) == (True, [])
            await transport.close()
        said = await refusal(f"{gate.url(trusted=server)}&certfile={tmp_path / 'nowhere'}")
        assert "certfile" in said
        assert "No such file" in said
    with pytest.raises(ConfigError, match="keyfile is the key of certfile, which is not given"):
        parse_address(f"{gate.url(trusted=server)}&keyfile={key}")


@scene
async def test_a_certificate_that_expires_while_workers_run_is_said_once_and_a_renewed_one_used(
    own_redis: LocalRedis, tmp_path: Path, postgres_tables: PostgresSchema
) -> None:
    own, old = certificate(tmp_path / "own"), certificate(tmp_path / "old", *_LONG_AGO)
    both = tmp_path / "both.pem"
    both.write_text(own.signer.read_text() + old.signer.read_text())
    async with Gate(own_redis).standing(own) as gate:
        here = Shop(postgres_tables, gate.url(trusted=Certificate(own.shown, both)))
        async with here.hf, here.hf.worker():
            await here.enqueue(0)
            await here.until_ran(1)
            gate.show(old)
            gate.cut()
            await until(lambda: bool(here.told(TransportRefused)), "the reason")
            await here.enqueue(1)
            await here.until_ran(2)
            gate.show(own)
            await until(lambda: bool(here.told(TransportUp)), "the renewed one")
        down, refused, up = here.told(TransportDown, TransportRefused, TransportUp)
    assert isinstance(down, TransportDown)
    assert isinstance(up, TransportUp)
    assert "certificate has expired" in refused.error  # type: ignore[union-attr]
