"""What can be looked at and changed while everything runs, each under its noun: a part of `Holdfast`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from holdfast.client.audit import Audit
from holdfast.client.breakers import Breakers
from holdfast.client.client import Client
from holdfast.client.dead import DeadLetters
from holdfast.client.jobs import Jobs
from holdfast.client.keys import Keys
from holdfast.client.limits import Limits
from holdfast.client.queues import Queues, Workers
from holdfast.client.routes import Routes
from holdfast.client.tenants import Tenants


class Nouns(ABC):
    """Each is there while the app is open."""

    @abstractmethod
    def _open_client(self) -> Client: ...

    @property
    def jobs(self) -> Jobs:
        """Look at, list, cancel, retry, move and explain jobs."""
        return self._open_client().jobs

    @property
    def dead(self) -> DeadLetters:
        """The dead letters: list, count, get, edit, replay, purge."""
        return self._open_client().dead

    @property
    def queues(self) -> Queues:
        """Queues: list, pause, resume, drain, weights, watermarks, options, purge."""
        return self._open_client().queues

    @property
    def routes(self) -> Routes:
        """Where jobs go by the names of their tasks, for all processes: list, set, clear."""
        return self._open_client().routes

    @property
    def tenants(self) -> Tenants:
        """Tenants: weights, pause, resume."""
        return self._open_client().tenants

    @property
    def limits(self) -> Limits:
        """Concurrency limits and rates: list, set, clear."""
        return self._open_client().limits

    @property
    def breakers(self) -> Breakers:
        """Circuit breakers: list, open, close, and how they count."""
        return self._open_client().breakers

    @property
    def audit(self) -> Audit:
        """Who changed what of all these, and when: list."""
        return self._open_client().audit

    @property
    def keys(self) -> Keys:
        """Keys of the HTTP API: create, list, rotate, revoke."""
        return self._open_client().keys

    @property
    def workers(self) -> Workers:
        """The workers that are registered: list."""
        return self._open_client().workers
