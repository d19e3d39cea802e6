"""Whether Redis is there: one report per change, and the way back by itself.

Duties:
1. Connections are made here, each looked at by `examination` before it is used.
2. The first failure of any of them makes the transport be away: everybody does without it from then on, at once.
3. While it is away one connection is tried, less and less often; when it can be written to, the transport is back. One
   that was back for a moment only is not tried more often than before.
4. One that refuses again as soon as it is back (somebody else's key in place of ours, say) is left alone for longer and
   longer, up to a minute: a change of state is worth a line in the log, and not one every second.
5. When something that a person has to mend stands in the way back, such as a password that was changed, that is said
   once: what broke the connection may have been something else.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable

from holdfast.core.errors import ConfigError
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.clock import Clock
from holdfast.telemetry.hub import Telemetry
from holdfast.telemetry.transport_events import TransportDown, TransportRefused, TransportUp
from holdfast.transports.redis_streams.address import Address
from holdfast.transports.redis_streams.cluster_line import ClusterLine
from holdfast.transports.redis_streams.examination import as_config_error, examine
from holdfast.transports.redis_streams.line import Line, Way, all_of
from holdfast.transports.redis_streams.sentinels import enter_master
from holdfast.transports.redis_streams.slots import Place, Slots, slot_of
from holdfast.transports.redis_streams.wire import Refusal, Unreachable, Untrusted, Wire, connect

#: A Redis that takes longer for an answer does not save anybody time: the store is as quick.
ANSWER_S = 0.5
FAILURES = (Unreachable, Refusal, ConfigError)
#: One that was there for so long was well.
_STEADY_S = 10.0


class Connection:
    """All connections of one process to one Redis."""

    def __init__(
        self,
        address: Address,
        *,
        trial_key: str,
        clock: Clock,
        telemetry: Telemetry,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._address = address
        self._trial_key = trial_key
        self._clock = clock
        self._telemetry = telemetry
        self._answer_s = answer_s
        self._slots = Slots(address.hosts, self._enter)
        self._lines: list[Way] = []
        self._trial = self.line()
        self._watchers: list[Callable[[], None]] = []
        self._backoff = Backoff(0.05, 2.0)
        self._distrust = Backoff(1.0, 60.0)
        self._up_since_s = float("-inf")
        self._closed = False
        self._down_since_s: float | None = None
        self._returning: asyncio.Task[None] | None = None
        self.is_up = False

    def line(self) -> Way:
        """One more, for a purpose of its own."""
        made: Way
        if self._address.is_cluster:
            made = ClusterLine(self._slots, self._connect, answer_s=self._answer_s)
        else:
            made = Line(self._connect, answer_s=self._answer_s)
        self._lines.append(made)
        return made

    def forget(self, line: Way) -> None:
        line.drop()
        self._lines.remove(line)

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have it called when the transport goes away or comes back; returns the way out."""
        self._watchers.append(call)
        return lambda: self._watchers.remove(call) if call in self._watchers else None

    async def open(self) -> None:
        """ConfigError where a person has to act; a server that is away is tried again later."""
        try:
            await self.attempt()
        except ConfigError:
            raise
        except (Unreachable, Refusal) as error:
            self.failed(error)
        else:
            self.is_up = True
            self._up_since_s = self._clock.monotonic()

    async def close(self) -> None:
        self.is_up, self._closed = False, True
        if self._returning is not None:
            self._returning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._returning
        for line in self._lines:
            line.drop()

    def failed(self, error: BaseException) -> None:
        """Something went wrong on one of the lines: none is trusted."""
        if self._returning is None and not self._closed:
            self.is_up = False
            self._down_since_s = self._clock.monotonic()
            self._telemetry.emit(TransportDown(self._address.place, str(error)))
            self._returning = asyncio.get_running_loop().create_task(self._return(error), name="holdfast-redis")
            for line in self._lines:
                line.drop()
            self._tell()

    async def _return(self, error: BaseException) -> None:
        if self._clock.monotonic() - self._up_since_s >= _STEADY_S:
            self._backoff.reset()
            self._distrust.reset()
        elif isinstance(error, Refusal):
            await asyncio.sleep(self._distrust.next())
        said = str(error)
        while True:
            await asyncio.sleep(self._backoff.next())
            with contextlib.suppress(Exception):  # whatever it is: the next time it may be well
                try:
                    await self.attempt()
                    break
                except ConfigError as refused:
                    if said != str(refused):
                        said = str(refused)
                        self._telemetry.emit(TransportRefused(self._address.place, said))
        self._returning = None
        self.is_up = True
        assert self._down_since_s is not None
        self._up_since_s = self._clock.monotonic()
        self._telemetry.emit(TransportUp(self._address.place, self._up_since_s - self._down_since_s))
        self._tell()

    async def attempt(self) -> None:
        """Whether it takes what is written: it may be a replica, full, or unable to write to its disk. ConfigError: a
        person has to act."""
        try:
            if self._address.is_cluster:
                await self._slots.look()
            await all_of([self._trial.ask("SET", key, "", "PX", 1, key=key) for key in self.key_of_each_server()])
        except Untrusted as error:
            raise ConfigError(f"the Redis at {self._address.place} cannot be used: {error}") from error

    def key_of_each_server(self) -> list[str]:
        """Which nobody needs."""
        if not self._address.is_cluster:
            return [self._trial_key]
        return [_key_in(self._trial_key, some.first, some.last) for some in self._slots.masters().values()]

    @property
    def place(self) -> str:
        return self._address.place

    async def _connect(self, place: Place | None = None) -> Wire:
        if self._address.master is not None and place is None:
            return await enter_master(self._address, self._connect)
        wire = await self._enter(place)
        try:
            wire.run_id = await examine(
                wire, self._address.place, within_s=self._answer_s, is_cluster=self._address.is_cluster
            )
        except Refusal as refusal:
            wire.close()
            raise as_config_error(refusal, self._address.place) or refusal from None
        except BaseException:
            wire.close()
            raise
        return wire

    async def _enter(self, place: Place | None = None) -> Wire:
        try:
            return await connect(self._address, place)
        except Refusal as refusal:
            raise as_config_error(refusal, self._address.place) or refusal from None

    def _tell(self) -> None:
        for call in tuple(self._watchers):
            call()


@functools.cache
def _key_in(trial_key: str, first: int, last: int) -> str:
    """A key of one of these slots: a node takes no others."""
    return next(key for n in itertools.count() if first <= slot_of(key := f"{trial_key}:{{{n}}}") <= last)
