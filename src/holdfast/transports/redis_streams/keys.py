"""Which keys an installation of Holdfast has in a Redis.

    {prefix}:{queue}:N      a stream per lane, N its priority from 0 to 9; the braces are part of the key
    {prefix}:{queue}:meta   a hash: `born` and `filled` (see lua/watch.lua), `cursor:N` (see lua/recover.lua), `news`
                            (another value each time that an operator has changed the queue's settings)
    {prefix}:trial          written when a connection is tried, and gone within a millisecond; in a cluster one per
                            node, {prefix}:trial:{N} with an N of that node

The queue's name is in braces so that all its keys are on one node of a Redis Cluster: a script works on those of one
node only. Names of queues have no braces.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.fairness import Lane
from holdfast.core.priority import HIGHEST, LOWEST

#: The one group of consumers of every stream; in the scripts it is spelt out.
GROUP = "workers"


class Keys:
    """The keys under one prefix."""

    def __init__(self, prefix: str, *, apart: bool = False) -> None:
        """`apart`: what is of different queues may be on different nodes."""
        self.prefix = prefix
        self.apart = apart

    def stream(self, lane: Lane) -> str:
        return f"{self.prefix}:{{{lane.queue}}}:{lane.priority}"

    def meta(self, queue: str) -> str:
        return f"{self.prefix}:{{{queue}}}:meta"

    def together(self, queues: Iterable[str]) -> list[list[str]]:
        """Queues whose keys one command may touch."""
        names = sorted(set(queues))
        return [[name] for name in names] if self.apart else [names][: len(names)]


def lanes_of(queue: str) -> list[Lane]:
    """All of a queue's lanes, the most urgent first."""
    return [Lane(queue, priority) for priority in range(HIGHEST, LOWEST - 1, -1)]
