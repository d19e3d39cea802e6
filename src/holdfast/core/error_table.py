"""The built-in table of errors, asked in this order. Classes of other packages are named, never imported."""

from __future__ import annotations

from typing import Final

from holdfast.core.error_class import ErrorClass
from holdfast.core.errors import (
    HardTimeout,
    InvalidArguments,
    InvalidOptions,
    QueueFull,
    SoftTimeout,
    StoreUnavailable,
)


def _is_locked(exc: BaseException) -> bool:
    return "locked" in str(exc) or "busy" in str(exc)


BUILT_IN: Final[tuple[ErrorClass, ...]] = (
    ErrorClass(
        name="rate_limited",
        then="retry_after",
        statuses=(429,),
        exceptions=(QueueFull,),
    ),
    ErrorClass(name="unavailable", then="retry_after", statuses=(503,), breaker=True),
    ErrorClass(
        name="pool_exhausted",
        then="fixed",
        delay=2.0,
        max_attempts=3,
        exceptions=(
            "httpx.PoolTimeout",
            "urllib3.exceptions.EmptyPoolError",
            "sqlalchemy.exc.TimeoutError",
            "psycopg_pool.PoolTimeout",
            "psycopg_pool.TooManyRequests",
            "psycopg.errors.TooManyConnections",
            "asyncpg.exceptions.TooManyConnectionsError",
            "redis.exceptions.MaxConnectionsError",
        ),
    ),
    ErrorClass(
        name="validation",
        then="dead",
        statuses=(400, 413, 414, 415, 422),
        exceptions=(
            InvalidArguments,
            InvalidOptions,
            "pydantic_core._pydantic_core.ValidationError",
            "msgspec.ValidationError",
            "jsonschema.exceptions.ValidationError",
            "marshmallow.exceptions.ValidationError",
            "django.core.exceptions.ValidationError",
        ),
    ),
    ErrorClass(
        name="downstream",
        then="backoff",
        breaker=True,
        statuses=(502, 504),
        exceptions=(
            ConnectionRefusedError,
            "socket.gaierror",
            "httpx.ConnectError",
            "httpx.ConnectTimeout",
            "requests.exceptions.ConnectionError",
            "aiohttp.client_exceptions.ClientConnectorError",
            "asyncpg.exceptions.CannotConnectNowError",
            "botocore.exceptions.EndpointConnectionError",
        ),
    ),
    ErrorClass(
        name="transient",
        then="backoff",
        breaker=True,
        statuses=(408, 425),
        exceptions=(
            TimeoutError,
            ConnectionError,
            SoftTimeout,
            HardTimeout,
            StoreUnavailable,
            "asyncio.exceptions.IncompleteReadError",
            "http.client.IncompleteRead",
            "httpx.TransportError",
            "requests.exceptions.Timeout",
            "requests.exceptions.ChunkedEncodingError",
            "aiohttp.client_exceptions.ClientConnectionError",
            "aiohttp.client_exceptions.ClientPayloadError",
            "psycopg.OperationalError",
            "sqlalchemy.exc.OperationalError",
            "asyncpg.exceptions.PostgresConnectionError",
            "asyncpg.exceptions.TransactionRollbackError",
            "asyncpg.exceptions.LockNotAvailableError",
            "redis.exceptions.ConnectionError",
            "redis.exceptions.TimeoutError",
        ),
    ),
    ErrorClass(name="transient", then="backoff", exceptions=("sqlite3.OperationalError",), when=_is_locked),
)
