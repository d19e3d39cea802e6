"""An open client and the event loop on which it lives, to be used from threads that have no loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.core.errors import HoldfastError, NotOpen

if TYPE_CHECKING:
    from holdfast.client.client import Client

T = TypeVar("T")

_LOOK_S = 1.0
_END: Any = object()


class Place:
    """Runs coroutines where the client lives and waits for them here; what they raise comes through as it is.

    `NotOpen` also stands for a loop that ended meanwhile: then nobody is left to answer.
    """

    def __init__(
        self,
        client: Client,
        submit: Callable[[Coroutine[Any, Any, Any]], concurrent.futures.Future[Any]],
        is_alive: Callable[[], bool],
    ) -> None:
        self.client = client
        self._submit = submit
        self._is_alive = is_alive

    @classmethod
    def on_loop(cls, client: Client, loop: asyncio.AbstractEventLoop) -> Place:
        """A client that somebody else has opened, on a loop that they run."""

        def submit(coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
            try:
                return asyncio.run_coroutine_threadsafe(coroutine, loop)
            except RuntimeError as closed:
                coroutine.close()
                raise NotOpen("the event loop on which the app was open has ended") from closed

        return cls(client, submit, loop.is_running)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it over there; blocks."""
        future = self._submit(coroutine)
        try:
            while not concurrent.futures.wait([future], timeout=_LOOK_S).done:
                if not self._is_alive():
                    raise NotOpen("the event loop on which the app was open has ended before it answered")
        except BaseException:
            future.cancel()  # nobody waits any more: Ctrl-C, mostly
            raise
        if future.cancelled():
            raise NotOpen("the app was closed before it answered")
        result: T = future.result()
        return result

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """An async iterator's items, one by one."""

        async def step() -> T:
            return await anext(items, _END)

        async def leave() -> None:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

        try:
            while (item := self.run(step())) is not _END:
                yield item
        finally:
            with contextlib.suppress(NotOpen):  # it went with its loop
                self.run(leave())


def refuse_on_a_loop() -> None:
    """Waiting for an answer on an event loop would stop everything else on it."""
    if asyncio._get_running_loop() is not None:
        raise HoldfastError(
            "hf.sync was called inside a running event loop, which it would block: use `await` with the app itself "
            "there, as in `await task.enqueue(…)`, or call it in a thread with asyncio.to_thread(…)"
        )
