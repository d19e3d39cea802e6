"""Real servers on this machine without Docker or root, from wheels: for development and tests, not for production."""

from __future__ import annotations

from holdfast.local.postgres import LocalPostgres
from holdfast.local.redis import LocalRedis

__all__ = ["LocalPostgres", "LocalRedis"]
