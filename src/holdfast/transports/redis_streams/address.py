"""Where a Redis is and how one gets in, from its URL; behind Sentinels and in a cluster, whom to ask where it is now.

`redis://[user:password@]host[:port][/db]`, `rediss://…` with TLS, and with Sentinels
`redis+sentinel://[user:password@]host[:port],…/master[/db]` (`rediss+sentinel://…`: TLS to the server and to them);
in a Redis Cluster `redis+cluster://[user:password@]host[:port],…` (`rediss+cluster://…`), with some of its nodes.
Parameters: `passfile` (a file that holds the password), `cafile` (who has signed the server's certificate),
`certfile` and `keyfile` (what a server is shown that asks for a certificate), `sentinel_password`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.core.errors import ConfigError
from holdfast.core.urls import mask

_PORT, _SENTINEL_PORT, _HIGHEST_PORT = 6379, 26379, 65_535
_SENTINEL, _CLUSTER = "+sentinel", "+cluster"
_SCHEMES = tuple(f"{name}{kind}" for name in ("redis", "rediss") for kind in ("", _SENTINEL, _CLUSTER))
_PARAMETERS = ("passfile", "cafile", "certfile", "keyfile", "sentinel_password")


@dataclass(frozen=True, slots=True)
class Address:
    """What a URL says."""

    hosts: tuple[tuple[str, int], ...]
    """The server, or the Sentinels, or some nodes of the cluster."""
    master: str | None = None
    """The name by which Sentinels know it."""
    is_cluster: bool = False
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    passfile: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    tls: bool = False
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None

    @property
    def place(self) -> str:
        """In words, without a password."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        if self.is_cluster:
            return f"the cluster of {hosts}"
        return f"{hosts}/{self.db}" if self.master is None else f"{self.master} of {hosts}, database {self.db}"

    def secret(self) -> str | None:
        """The password; read from its file each time, so that it can be changed there."""
        if self.passfile is None:
            return self.password
        try:
            return Path(self.passfile).read_text("utf-8").strip()
        except OSError as error:
            raise ConfigError(f"the file with Redis's password cannot be read: {error}") from error
        except UnicodeDecodeError:  # which would show what it has read
            raise ConfigError(f"the file with Redis's password, {self.passfile}, is no text in UTF-8") from None

    def ssl_context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.cafile)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"cafile={self.cafile} of the Redis URL cannot be used: {error}") from error
        if self.certfile is not None:
            try:
                context.load_cert_chain(self.certfile, self.keyfile)
            except (OSError, ssl.SSLError) as error:
                files = " and ".join(filter(None, (f"certfile={self.certfile}", self.keyfile and "keyfile")))
                raise ConfigError(f"{files} of the Redis URL cannot be used: {error}") from error
        return context


def parse_address(url: str) -> Address:
    """The address, or ConfigError in a sentence."""
    shown = mask(url)
    try:
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ConfigError(f"the Redis URL {shown!r} cannot be taken apart: write redis://host:6379/0") from None
    if parts.scheme not in _SCHEMES:
        raise ConfigError(
            f"{shown!r} is not the URL of a Redis: write redis://host:6379/0, rediss://… for TLS, "
            "redis+sentinel://host:26379,…/master, or redis+cluster://host:6379,…"
        )
    if unknown := parameters.keys() - set(_PARAMETERS):
        raise ConfigError(
            f"the Redis URL {shown!r} has a parameter {min(unknown)!r}; there are {', '.join(_PARAMETERS)}"
        )
    if "keyfile" in parameters and "certfile" not in parameters:
        raise ConfigError(f"in the Redis URL {shown!r}, keyfile is the key of certfile, which is not given")
    with_sentinels, in_cluster = parts.scheme.endswith(_SENTINEL), parts.scheme.endswith(_CLUSTER)
    login, _, hosts = parts.netloc.rpartition("@")
    username, colon, password = login.partition(":")
    path = [unquote(each) for each in parts.path.split("/")[1:] if each]
    master = path.pop(0) if with_sentinels and path else None
    if with_sentinels and master is None:
        raise ConfigError(f"the Redis URL {shown!r} does not name a master: write redis+sentinel://host:26379/master")
    if len(path) > 1 or (path and not path[0].isdecimal()):
        raise ConfigError(f"the Redis URL {shown!r} names no database: write its number, as in redis://host:6379/0")
    if in_cluster and path and int(path[0]):
        raise ConfigError(f"the Redis URL {shown!r} names a database: a Redis Cluster has only the first, leave it out")
    places = hosts.split(",")
    if len(places) > 1 and not (with_sentinels or in_cluster):
        raise ConfigError(
            f"the Redis URL {shown!r} names several hosts: write redis+cluster:// for a Redis Cluster, "
            "redis+sentinel:// for Sentinels"
        )
    return Address(
        hosts=tuple(_host(each, shown, _SENTINEL_PORT if with_sentinels else _PORT) for each in places),
        master=master,
        is_cluster=in_cluster,
        db=int(path[0]) if path else 0,
        username=unquote(username) or None,
        password=unquote(password) if colon else None,
        passfile=parameters.get("passfile"),
        sentinel_password=parameters.get("sentinel_password"),
        tls=parts.scheme.startswith("rediss"),
        cafile=parameters.get("cafile"),
        certfile=parameters.get("certfile"),
        keyfile=parameters.get("keyfile"),
    )


def _host(text: str, shown: str, default: int) -> tuple[str, int]:
    """`host`, `host:port`, `[::1]:port`."""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not port:
        return host or "localhost", default
    if not port.isdecimal() or not 0 < int(port) <= _HIGHEST_PORT:
        raise ConfigError(f"the Redis URL {shown!r} has a port that is not a number from 1 to {_HIGHEST_PORT}")
    return host or "localhost", int(port)
