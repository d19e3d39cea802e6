"""Delivers events to whoever attached, in the emitter's thread. What events exist and mean is in `events`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeAlias

from holdfast.core.errors import InvalidOptions
from holdfast.telemetry.events import EVENTS, Event

Subscriber: TypeAlias = Callable[[Event], object]

_log = logging.getLogger("holdfast.telemetry")


class _Subscription:
    __slots__ = ("only", "reported", "subscriber")

    def __init__(self, subscriber: Subscriber, only: tuple[type, ...]) -> None:
        self.subscriber = subscriber
        self.only = only
        self.reported = False


class Telemetry:
    """The events of one app; there is no global one.

    Emitting takes no lock: the routes are a dictionary that attach and detach replace as a whole.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._routes: dict[type, tuple[_Subscription, ...]] = {}

    def attach(
        self, subscriber: Subscriber, *, only: type[Event] | tuple[type[Event], ...] | None = None
    ) -> Callable[[], None]:
        """Call `subscriber` with every event (or `only` those types); returns what detaches it.

        It is called in the thread that emits, often the event loop's, so it must be quick and must not
        block. What it raises is logged once and never reaches the emitter. Another thread that emits at the
        moment of a detach may still deliver that one event.
        """
        if not callable(subscriber):
            raise InvalidOptions(f"attach({subscriber!r}): a subscriber is a function that takes one event")
        types = EVENTS if only is None else only if isinstance(only, tuple) else (only,)
        for kind in types:
            if kind not in EVENTS:
                raise InvalidOptions(f"attach(only=…): {kind!r} is not one of the events in holdfast.telemetry")
        subscription = _Subscription(subscriber, types)
        with self._lock:
            self._route((*self._subscriptions, subscription))

        def detach() -> None:
            with self._lock:
                self._route(tuple(s for s in self._subscriptions if s is not subscription))

        return detach

    def wants(self, event_type: type[Event]) -> bool:
        """Whether anybody listens: hot paths ask before they build an event."""
        return event_type in self._routes

    def emit(self, event: Event) -> None:
        """Hand the event to its subscribers, in the order in which they attached."""
        for subscription in self._routes.get(type(event), ()):
            try:
                subscription.subscriber(event)
            except Exception:
                self._report(subscription, event)

    def _route(self, subscriptions: tuple[_Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        wanted = {kind for subscription in subscriptions for kind in subscription.only}
        self._routes = {kind: tuple(s for s in subscriptions if kind in s.only) for kind in wanted}

    def _report(self, subscription: _Subscription, event: Event) -> None:
        with self._lock:
            first, subscription.reported = not subscription.reported, True
        if first:
            _log.exception(
                "subscriber %r failed on %s; it stays attached, and its further errors are not logged",
                subscription.subscriber,
                event.name,
            )
