"""Redis Streams: wakes workers in well under a millisecond, and shares work out among any number of them."""

from __future__ import annotations

from holdfast.transports.redis_streams.address import Address, parse_address
from holdfast.transports.redis_streams.transport import RedisStreams

__all__ = ["Address", "RedisStreams", "parse_address"]
