"""What a submission says in place of its task, as the library takes it; what makes no sense is refused by its field."""

from __future__ import annotations

from typing import Any

from holdfast.client.gating import Flow
from holdfast.client.request import Request
from holdfast.core.errors import InvalidOptions
from holdfast.http.bodies import Submission
from holdfast.http.call_bodies import ONCE, OnceBody, UniqueBody
from holdfast.http.caller import Caller
from holdfast.http.problem import Problem
from holdfast.http.problems import FORBIDDEN, INVALID_REQUEST


def overrides_of(caller: Caller, body: Submission) -> dict[str, Any]:
    """Those that were given; null is given, too, and says: whatever the task says, not for this call."""
    given: dict[str, Any] = {}
    for name in ONCE:
        if name in body.model_fields_set:
            said: OnceBody | None = getattr(body, name)
            given[name] = None if said is None else _made(name, said)
    _check_together(body)
    if caller.queues is not None:
        _check_replacing(body)
    if body.retry is not None:
        given["retry"] = _made("retry", body.retry)
    return given


def check_by(request: Request, body: Submission) -> None:
    """Refuse names that are none of the call's arguments."""
    for name in ONCE:
        said: OnceBody | None = getattr(body, name)
        if said is not None and said.by is not None:
            there = Flow(request).arguments
            for place, each in enumerate(said.by):
                if each not in there:
                    raise Problem(INVALID_REQUEST, f"the call has no argument {each!r}", field=f"{name}.by[{place}]")


def _made(field: str, said: Any) -> Any:
    try:
        return said.option()
    except InvalidOptions as error:
        raise Problem(INVALID_REQUEST, str(error), field=field) from None


def _check_together(body: Submission) -> None:
    said = [name for name in ONCE if getattr(body, name) is not None]
    if len(said) > 1:
        raise Problem(INVALID_REQUEST, f"{' and '.join(said)} exclude each other; give one of them", field=said[1])
    if body.debounce is not None and (body.delay_s is not None or body.run_at is not None):
        other = "delay_s" if body.delay_s is not None else "run_at"
        raise Problem(INVALID_REQUEST, f"debounce and {other} say two different times", field="debounce")


def _check_replacing(body: Submission) -> None:
    """What is replaced is cancelled, and may be in a queue that is not the caller's."""
    is_unique = isinstance(body.unique, UniqueBody) and body.unique.when_taken == "replace"
    if is_unique or body.debounce is not None:
        field = "unique.when_taken" if is_unique else "debounce"
        raise Problem(FORBIDDEN, "the key is bound to queues, and what is replaced may be in another", field=field)
