"""The built-in table of errors, asked in this order. Classes of other packages are named, never imported."""

from __future__ import annotations

from typing import Final

from holdfast.core.error_class import ErrorClass
from holdfast.core.error_signs import tells_of_a_lock, tells_of_the_network
from holdfast.core.errors import (
    HardTimeout,
    InvalidArguments,
    InvalidOptions,
    QueueFull,
    SoftTimeout,
    StoreUnavailable,
)

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
    # Of a database, or of the jobs' own store: worth another attempt, and nobody else's service is down for it.
    ErrorClass(
        name="transient",
        then="backoff",
        exceptions=(
            "sqlite3.OperationalError",
            "psycopg.Error",
            "psycopg2.Error",
            "asyncpg.exceptions._base.PostgresError",
            "sqlalchemy.exc.DBAPIError",
        ),
        when=tells_of_a_lock,
    ),
    ErrorClass(name="transient", then="backoff", exceptions=(StoreUnavailable,)),
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
            "urllib3.exceptions.NewConnectionError",
            "urllib3.exceptions.ConnectTimeoutError",
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
            "asyncio.exceptions.IncompleteReadError",
            "http.client.IncompleteRead",
            "httpx.TransportError",
            "requests.exceptions.Timeout",
            "requests.exceptions.ChunkedEncodingError",
            "urllib3.exceptions.TimeoutError",
            "urllib3.exceptions.ProtocolError",
            "urllib3.exceptions.ProxyError",
            "aiohttp.client_exceptions.ClientConnectionError",
            "aiohttp.client_exceptions.ClientPayloadError",
            "psycopg.OperationalError",
            "sqlalchemy.exc.OperationalError",
            "asyncpg.exceptions.PostgresConnectionError",
            "redis.exceptions.ConnectionError",
            "redis.exceptions.TimeoutError",
        ),
    ),
    ErrorClass(name="transient", then="backoff", breaker=True, exceptions=(OSError,), when=tells_of_the_network),
)
