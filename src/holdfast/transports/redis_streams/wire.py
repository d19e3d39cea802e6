"""One connection to a Redis server: words out, replies in, each to whom it belongs; knows no command but the first few.

A reply that nobody waits for any more would be taken for the answer to the next question. So whoever stops waiting,
because he was cancelled or the time is over, leaves a connection that is never used again: `ask` closes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from typing import Any, cast

import hiredis

from holdfast.core.errors import ConfigError
from holdfast.transports.redis_streams.address import Address

CONNECT_S = 2.0
_NAME = "holdfast"


class Unreachable(Exception):
    """No answer: the server is away, or does not behave like one."""


class Untrusted(Unreachable):
    """It is there, and its certificate is not one to trust: a person has to act."""


class Refusal(Exception):
    """The server's answer is an error; `code` is its first word."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.partition(" ")[0]


class Wire(asyncio.Protocol):
    """See the module's sentences. One question at a time."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader()
        self._transport: asyncio.Transport | None = None
        self._asked: asyncio.Future[Any] | None = None
        self.is_open = False
        self.run_id = ""
        """The server's own name of this run of it, once it was examined."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            reply = self._reader.gets()
        except hiredis.ProtocolError as error:
            self._fail(Unreachable(f"what answers is no Redis: {error}"))
            return
        if reply is False:  # not all of it is there yet
            return
        asked, self._asked = self._asked, None
        if asked is None or self._reader.has_data():
            self._fail(Unreachable("an answer that nobody had asked for"))
        if asked is not None and not asked.done():
            asked.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(Unreachable(f"the connection was closed: {error}" if error else "the connection was closed"))

    def close(self) -> None:
        """At once, whatever is under way."""
        self._fail(Unreachable("the connection was given up"))

    def _fail(self, error: Unreachable) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()
        asked, self._asked = self._asked, None
        if asked is not None and not asked.done():
            asked.set_exception(error)
            asked.exception()  # its asker may have gone

    async def ask(self, *words: bytes | str | int, within_s: float) -> Any:
        """The reply; Refusal where it is an error. After anything else that is raised the connection is closed."""
        if not self.is_open or self._transport is None:
            raise Unreachable("the connection was closed")
        asked = self._asked = asyncio.get_running_loop().create_future()
        self._transport.write(hiredis.pack_command(words))  # type: ignore[arg-type]  # its stub says: one word
        try:
            async with asyncio.timeout(within_s):
                reply = await asked
        except TimeoutError:
            self.close()
            raise Unreachable(f"no answer within {within_s:g} s") from None
        except BaseException:  # cancelled: a reply is on its way to nobody
            self.close()
            raise
        if isinstance(reply, hiredis.ReplyError):
            raise Refusal(str(reply))
        return reply


async def connect(address: Address, place: tuple[str, int] | None = None) -> Wire:
    """A connection that is let in, to the right database; Unreachable or Refusal otherwise. `place`: a node."""
    try:
        async with asyncio.timeout(CONNECT_S):
            return await _enter(address, *(place or address.hosts[0]))
    except TimeoutError:
        raise Unreachable(f"no connection within {CONNECT_S:g} s") from None


async def _enter(address: Address, host: str, port: int) -> Wire:
    wire = await open_wire(address, host, port)
    try:
        if (password := address.secret()) is not None:
            await log_in(wire, address.username, password, within_s=CONNECT_S)
        if address.db:
            await wire.ask("SELECT", address.db, within_s=CONNECT_S)
        with contextlib.suppress(Refusal):  # it is only shown
            await wire.ask("CLIENT", "SETNAME", _NAME, within_s=CONNECT_S)
    except BaseException:
        wire.close()
        raise
    return wire


async def log_in(wire: Wire, username: str | None, password: str, *, within_s: float) -> None:
    try:
        await wire.ask("AUTH", *([] if username is None else [username]), password, within_s=within_s)
    except Refusal as refusal:
        # One that knows no AUTH quotes what it was sent, or the beginning of it; what it says is logged.
        said = re.split("[`'\"]", str(refusal))[0]
        raise Refusal(said.replace(password, "***") if password else said) from None


async def open_wire(address: Address, host: str, port: int) -> Wire:
    """A connection that nobody has been let in by yet."""
    context = address.ssl_context()
    try:
        _, wire = await asyncio.get_running_loop().create_connection(Wire, host, port, ssl=context)
    except ConfigError:
        raise
    except ssl.SSLCertVerificationError as error:
        raise Untrusted(f"{host}:{port}: {_what_to_mend(error)}") from error
    except (OSError, ValueError) as error:
        raise Unreachable(f"{host}:{port}: {error}") from error
    return wire


def _what_to_mend(error: ssl.SSLCertVerificationError) -> str:
    match error.verify_code:
        case 9 | 10:  # X509_V_ERR_CERT_NOT_YET_VALID, _HAS_EXPIRED
            remedy = "renew it on the server, or correct the clock of this machine"
        case 62 | 64:  # X509_V_ERR_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH
            remedy = "write a name in the Redis URL that the certificate was made for"
        case _:
            remedy = "name the certificate of who has signed it, as ?cafile=/etc/ca.pem in the Redis URL"
    return f"its certificate is not trusted ({error.verify_message.rstrip('.')}): {remedy}"
