"""A Redis Cluster for tests: three masters and a replica of the first, on loopback, to move slots in and to kill."""

from __future__ import annotations

import random
import secrets
import socket
import time
from collections.abc import Callable

from tests.redis.fixtures import StartRedis

from holdfast.local import LocalRedis
from holdfast.transports.redis_streams.slots import SLOTS, slot_of

PATIENCE_S = 60.0
_GLANCE_S = 0.02
#: Nodes speak to each other on a port that is higher by this.
_BUS = 10_000
_SETTINGS = {
    "cluster-enabled": "yes",
    "cluster-config-file": "nodes.conf",
    "cluster-node-timeout": "1000",
    "cluster-replica-validity-factor": "0",
    "repl-diskless-sync-delay": "0",
}


class RedisCluster:
    """`masters` as they were at first; `replica` follows the first of them, or the one that has this queue."""

    def __init__(self, start: StartRedis, *, replicated: str | None = None) -> None:
        password = secrets.token_urlsafe(12)
        settings = _SETTINGS | {"requirepass": password, "masterauth": password}
        *masters, replica = (start(settings=settings, port=cluster_port()) for _ in range(4))
        self.masters: list[LocalRedis] = masters
        self.replica: LocalRedis = replica
        share = -(-SLOTS // len(masters))
        for n, master in enumerate(masters):
            own = range(n * share, min((n + 1) * share, SLOTS))
            assert master.ask("CLUSTER", "ADDSLOTS", *map(str, own)) == b"+OK"
            assert master.ask("CLUSTER", "SET-CONFIG-EPOCH", str(n + 1)) == b"+OK"
        for other in (*masters[1:], replica):
            masters[0].ask("CLUSTER", "MEET", "127.0.0.1", str(other.port))
        await_all(lambda: all(self._knows_all(node) for node in (*masters, replica)), "the nodes to meet")
        self.followed = masters[0 if replicated is None else slot_of(f"{{{replicated}}}") // share]
        await_all(
            lambda: replica.ask("CLUSTER", "REPLICATE", node_id(self.followed)) == b"+OK", "a master for the replica"
        )
        await_all(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"), "the replica to follow")
        await_all(lambda: all(is_well(node) for node in (*masters, replica)), "the cluster")

    def _knows_all(self, node: LocalRedis) -> bool:
        return b"cluster_known_nodes:4" in node.ask("CLUSTER", "INFO")

    @property
    def url(self) -> str:
        """Names the replica and one node that there is not."""
        return f"redis+cluster://:{self.replica.password}@127.0.0.1:1,127.0.0.1:{self.replica.port}"

    def queue_of(self, master: LocalRedis) -> str:
        """A name for a queue whose keys this master has."""
        n = self.masters.index(master)
        share = -(-SLOTS // len(self.masters))
        return next(name for name in map("queue{}".format, range(1000)) if slot_of(f"{{{name}}}") // share == n)

    def move(self, queue: str, source: LocalRedis, target: LocalRedis) -> Callable[[], None]:
        """Begin to move the slot of a queue's keys; what is returned moves the keys and ends it."""
        slot = str(slot_of(f"{{{queue}}}"))
        assert target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", node_id(source)) == b"+OK"
        assert source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", node_id(target)) == b"+OK"

        def end() -> None:
            for key in source.list_keys():
                if f"{{{queue}}}" in key:
                    words = ("127.0.0.1", str(target.port), key, "0", "5000", "AUTH", target.password)
                    assert source.ask("MIGRATE", *words) in (b"+OK", b"+NOKEY")
            for node in (target, source):
                assert node.ask("CLUSTER", "SETSLOT", slot, "NODE", node_id(target)) == b"+OK"

        return end


def node_id(node: LocalRedis) -> str:
    return node.ask("CLUSTER", "MYID").decode()


def await_all(is_so: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until_s, f"waited in vain for {what}"
        time.sleep(_GLANCE_S)


def is_well(node: LocalRedis) -> bool:
    said = node.ask("CLUSTER", "INFO")
    return b"cluster_state:ok" in said and b"cluster_slots_ok:%d" % SLOTS in said


def cluster_port() -> int:
    """One whose bus is free as well; below those that connections are given."""
    while True:
        port = random.randrange(12_000, 22_000)
        try:
            for each in (port, port + _BUS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
        except OSError:
            continue
        return port
