"""TLS: the certificate is checked, and one that is not to be trusted is refused with what to do about it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.integration.scene import scene
from tests.postgres.fixtures import PostgresSchema
from tests.redis.apps import Shop, until
from tests.redis.test_connection import refusal

from holdfast.local import LocalRedis
from holdfast.telemetry.transport_events import TransportDown, TransportRefused, TransportUp

_LONG_AGO = ("-startdate", "20200101000000Z", "-enddate", "20200201000000Z")
_AUTHORITY = """[ca]
default_ca = here
[here]
database = {place}/index.txt
new_certs_dir = {place}
serial = {place}/serial
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = DNS:localhost
"""


class Certificate(NamedTuple):
    key: Path
    signed: Path


def certificate(place: Path, *dates: str) -> Certificate:
    """Signed by itself, for localhost; valid from now on, or between these dates."""
    place.mkdir()
    made = Certificate(place / "key.pem", place / "cert.pem")
    (place / "ca.conf").write_text(_AUTHORITY.format(place=place))
    (place / "index.txt").touch()
    (place / "serial").write_text("01\n")
    request = place / "request.pem"
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={place.name}", "-keyout", made.key, "-out", request)
    signing = ("-config", place / "ca.conf", "-keyfile", made.key, "-in", request, "-out", made.signed)
    _openssl("ca", "-selfsign", "-batch", "-notext", *signing, *(dates or ("-days", "1")))
    return made


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Gate:
    """Speaks TLS before a Redis that does not; `show` changes the certificate for whoever comes next."""

    def __init__(self, redis: LocalRedis) -> None:
        self.redis = redis
        self.port = 0
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._open: set[asyncio.StreamWriter] = set()

    def show(self, shown: Certificate) -> None:
        self._context.load_cert_chain(shown.signed, shown.key)

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
        trust = "" if trusted is None else f"?cafile={trusted.signed}"
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
        assert "its certificate is not trusted (self-signed certificate)" in said.replace("self signed", "self-signed")
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
async def test_a_certificate_that_expires_while_workers_run_is_said_once_and_a_renewed_one_used(
    own_redis: LocalRedis, tmp_path: Path, postgres_tables: PostgresSchema
) -> None:
    own, old = certificate(tmp_path / "own"), certificate(tmp_path / "old", *_LONG_AGO)
    both = tmp_path / "both.pem"
    both.write_text(own.signed.read_text() + old.signed.read_text())
    async with Gate(own_redis).standing(own) as gate:
        here = Shop(postgres_tables, gate.url(trusted=Certificate(own.key, both)))
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
