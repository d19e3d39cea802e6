"""Sends a request, again where no answer comes, and says a certain no only where it is one.

A try that was sent and not answered can still be under way, or lie before a server that is stopped. The next one is
told that the queue is full or that the job is not unique; then the first one arrives, finds room, and the job is there.
So whatever is refused after such a try is told as what it is: nobody knows. It is the rule of a call in process.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import httpx

from holdfast.client.http.wire import AGAIN, LONGEST_REST_S, kind_of, raise_problem, retry_after_s, value_of
from holdfast.core.errors import ApiRefused, HoldfastError, IdempotencyConflict, OutcomeUnknown

#: No connection was made, or nothing written to it: no server has heard of the request.
_NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)


class Asking:
    """One request, and its tries."""

    def __init__(self, http: httpx.AsyncClient, retries: int) -> None:
        self._http = http
        self._retries = retries
        self._unanswered = False

    async def ask(self, method: str, path: str, **sent: Any) -> Any:
        """What the server answers; its refusal as the error that the same call would have raised in process."""
        for left in range(self._retries, -1, -1):
            try:
                answer = await self._http.request(method, path, **sent)
            except httpx.TransportError as error:
                self._unanswered = self._unanswered or not isinstance(error, _NEVER_SENT)
                if not left:
                    raise ApiRefused(f"the server cannot be reached: {type(error).__name__}") from error
                await asyncio.sleep(0.1 * 2 ** (self._retries - left))
                continue
            if answer.is_success:
                return value_of(answer.status_code, answer.content)
            self._unanswered = self._unanswered or _leaves_it_open(answer)
            if answer.status_code not in AGAIN or not left:
                raise_problem(answer.status_code, answer.content, answer.headers)
            await asyncio.sleep(min(LONGEST_REST_S, retry_after_s(answer.headers)))
        raise AssertionError("unreachable")

    async def submit(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
        """What becomes a job; OutcomeUnknown where it may yet become one, whatever was answered last."""
        try:
            return await self.ask("POST", path, json=body, headers=headers)
        except IdempotencyConflict:  # for ever: the key is given once, and the first try would be told the same
            raise
        except HoldfastError as refusal:
            if not self._unanswered:
                raise
            raise OutcomeUnknown(
                f"{refusal}; but an earlier try, or this one, was not answered, and may yet be carried out: submit the "
                f"same call again with key={headers['Idempotency-Key']!r} to find out, which makes no second job"
            ) from refusal


def _leaves_it_open(answer: httpx.Response) -> bool:
    """An answer that is a proxy's own, which may have passed the request on; or the server's, which knows no more."""
    return answer.status_code in AGAIN and kind_of(answer.content) in (None, "outcome-unknown")
