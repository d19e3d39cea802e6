"""Fair shares between the tenants of a lane: which tag a job is given, by which its lane is ordered; so it is among
those of a lane who wait at a gate.

Start-time fair queueing. A lane has come as far as the largest tag that was ever claimed from it (`reached`). A job's
tag is that, or one job's cost behind the tenant's last tag, whichever is later: so a tenant that has nothing waiting is
next, and the thousandth job of another is a thousand costs away. Nothing is decided when jobs are claimed: the tags are
their order. Tag 0 is that of jobs in queues where nobody has ever named a tenant.
"""

from __future__ import annotations

import math
from typing import Final

from holdfast.core.errors import InvalidOptions
from holdfast.core.shown import shown

COST: Final = 10_000
"""What a job of a tenant with weight 1 costs; one with weight 2 pays half."""
NO_TENANT: Final = ""
"""In a queue with tenants, all jobs without one are one tenant."""
LIGHTEST: Final = 0.01
HEAVIEST: Final = 100.0
FURTHEST_TAG: Final = 1 << 60
"""Tags of those who wait at a gate are smaller than this."""
_FIRST: Final = 1  # tags begin here: 0 is for jobs without


def check_tenant_weight(weight: object) -> float:
    """A tenant's weight as a number, or `InvalidOptions` in a sentence."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise InvalidOptions(f"weight={shown(weight)}: a tenant's weight must be a number")
    if not LIGHTEST <= weight <= HEAVIEST:  # also where it is NaN
        raise InvalidOptions(
            f"weight={shown(weight)}: a tenant's weight must lie between {LIGHTEST:g} and {HEAVIEST:g}; 1 is that of "
            "every tenant for whom none is set"
        )
    return float(weight)


def cost_of(weight: float | None) -> int:
    """What one job costs its tenant; None, and what makes no sense, counts as weight 1."""
    if weight is None or not LIGHTEST <= weight <= HEAVIEST:
        return COST
    return math.floor(COST / weight + 0.5)


def next_tag(reached: int | None, last: int | None, cost: int, *, waiting: bool) -> int:
    """The tag of a tenant's next job, which begins a batch of them; each further one is `cost` behind.

    `last`: the tenant's last tag in this lane, as far as it is remembered. `waiting`: whether the job that got it still
    waits; a tenant owes nothing for one that was cancelled. Then `last` is that of the one before it which does wait,
    else whoever cancels his last job would begin anew beside his own backlog.
    """
    base = max(reached or 0, _FIRST)
    if last is None:
        return base
    if last <= base:
        return max(base, last + cost)
    return last + cost if waiting else base


def line_tag(*, reached: int, head: int | None, last: int | None, cost: int) -> int:
    """The tag that a job brings when it begins to wait at a gate, by which the tenants of its lane are let go there.

    It is its tenant's, whose first job uses the smallest. `reached`: the largest that was used in its lane there while
    somebody waited; `head`: the one that is next; `last`: its tenant's largest. A tenant whose jobs do not wait here is
    one of its costs away, and a hair less, so that it comes before the next job of any other of its weight. Nobody has
    to be remembered for that.
    """
    if last is not None:
        return min(last + cost, FURTHEST_TAG - 1)
    furthest_behind = (head or 0) - cost_of(LIGHTEST)  # what is remembered may be lost: nobody is overtaken for long
    return min(max(reached, furthest_behind, 0) + cost - 1, FURTHEST_TAG - 1)
