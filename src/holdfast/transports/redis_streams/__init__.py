"""Redis Streams: wakes one worker for each job, and shares work out without all of them meeting in the store."""

from __future__ import annotations

from holdfast.transports.redis_streams.address import Address, parse_address
from holdfast.transports.redis_streams.transport import RedisStreams

__all__ = ["Address", "RedisStreams", "parse_address"]
