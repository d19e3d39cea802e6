"""What a submission says in place of its task, as the library takes it; what makes no sense is refused by its field."""

from __future__ import annotations

from typing import Any

from holdfast.client.gating import Flow
from holdfast.client.request import Request, once_of_call
from holdfast.core.errors import InvalidOptions
from holdfast.core.once_options import Debounce
from holdfast.core.unique import WhenTaken
from holdfast.core.unset import UNSET
from holdfast.http.bodies import Submission
from holdfast.http.call_bodies import ONCE, OnceBody
from holdfast.http.caller import Caller
from holdfast.http.problem import Problem
from holdfast.http.problems import FORBIDDEN, INVALID_REQUEST


def overrides_of(body: Submission) -> dict[str, Any]:
    """Those that were given; null is given, too, and says: whatever the task says, not for this call."""
    given: dict[str, Any] = {}
    for name in ONCE:
        if name in body.model_fields_set:
            said: OnceBody | None = getattr(body, name)
            given[name] = None if said is None else _made(name, said)
    _check_together(body)
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


def check_replacing(caller: Caller, request: Request) -> None:
    """What is replaced is cancelled, and may be in a queue that is not his, also where the task says so."""
    once = once_of_call(request)
    if caller.queues is None or once is None or once.claim.when_taken is not WhenTaken.REPLACE:
        return
    if request.options.once is UNSET:
        said, field = f"task {request.task} replaces jobs, the key is bound to queues", "task"
    else:
        said, field = "the key is bound to queues", "debounce" if isinstance(once, Debounce) else "unique.when_taken"
    raise Problem(FORBIDDEN, f"{said}, and what is replaced may be in another", field=field)


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
