"""The texts that say where a store, a Redis or a port is, and the name of a schema: checked, and fit to be shown."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from holdfast.core.errors import ConfigError

_REDIS: Final = tuple(f"{name}{kind}://" for name in ("redis", "rediss") for kind in ("", "+sentinel", "+cluster"))
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}")


def mask(url: str) -> str:
    """The URL with `***` in place of every password, also where it is no valid URL."""
    url = re.sub(r"^((?:[^:/@]*://)?[^:/@]*):(?!//).*@", r"\1:***@", url, flags=re.DOTALL)
    return re.sub(r"(?i)(password|passwd|pwd|secret|token)=('[^']*'|[^&\s]+)", r"\1=***", url)


def is_postgres(url: str) -> bool:
    """Whether a URL names a PostgreSQL store."""
    return url.lower().startswith(("postgresql://", "postgres://"))


def check_redis(url: str) -> str:
    """The URL, if it can be one of a Redis; what it says is for the transport to read."""
    if not url.lower().startswith(_REDIS):
        raise ConfigError(
            f"{mask(url)!r} is not the URL of a Redis: write redis://host:6379/0, rediss://… for TLS, "
            "redis+sentinel://host:26379,…/master, or redis+cluster://host:6379,…"
        )
    return url


def check_schema(name: str) -> str:
    """The name, if it is one for a schema that needs no quotes and leaves room for what is made from it."""
    if not _SCHEMA.fullmatch(name) or name.startswith("pg_"):
        raise ConfigError(
            f"{name!r} is not a name for a schema: write up to 40 lower-case letters, digits and underscores, not "
            "beginning with a digit or with 'pg_'"
        )
    return name


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of `9464`, `127.0.0.1:9464` or `[::1]:9464`; without a host, this machine alone."""
    host, colon, port = text.strip().rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if (colon and not host) or not port.isascii() or not port.isdigit() or not len(port) <= 5 or int(port) > 65_535:
        raise ConfigError(f"{text!r} is not a port to listen at: write 9464, or with a host 0.0.0.0:9464 or [::]:9464")
    return host or "127.0.0.1", int(port)


def sqlite_path(url: str) -> str:
    """The file that a `sqlite:` URL names, or `:memory:`."""
    if url == ":memory:":
        return url
    shown = mask(url)
    scheme, colon, rest = url.partition(":")
    if not colon:
        raise ConfigError(f"{shown!r} is not a URL: for a file of that name write 'sqlite:///{shown}'")
    if scheme.lower() != "sqlite":
        raise ConfigError(
            f"{shown!r} has the scheme {scheme!r}, and jobs are stored in PostgreSQL or SQLite: "
            "write 'postgresql://user@host/database' or 'sqlite:///file.db'"
        )
    if not rest.startswith("///"):
        raise ConfigError(
            f"{shown!r} needs three slashes, because SQLite has no hosts: write "
            f"'sqlite:///{mask(rest.lstrip('/')) or 'file.db'}', or four slashes before an absolute path"
        )
    if "?" in rest or "#" in rest:
        raise ConfigError(
            f"{shown!r} has options, and SQLite takes none here: end the URL after the file's name "
            "(in a name, write %3F for a question mark and %23 for a hash)"
        )
    path = unquote(rest[3:])
    if not path or path.endswith("/"):
        raise ConfigError(f"{shown!r} names no file: write 'sqlite:///{path}holdfast.db'")
    if "\0" in path:
        raise ConfigError(f"{shown!r} has a NUL character in its file's name: leave out '%00'")
    return path
