"""The safeguards of dispatch by Redis: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

STREAMS = "src/holdfast/transports/redis_streams/"
INTAKE = "src/holdfast/worker/intake.py"
CLAIM = "src/holdfast/stores/postgres/migrations/0009_claim_entries.sql"
CLAIMS, DISPATCH, CONNECTION, CLUSTER, NEWS = (
    f"tests/redis/test_{name}.py" for name in ("claim_entries", "dispatch", "connection", "cluster", "news")
)

ON_REDIS = (
    Ablation(
        "P2",
        "Redis: a job that was announced twice is judged once",
        "src/holdfast/stores/postgres/dispatching.py",
        "list(dict.fromkeys(job_ids))",
        "list(job_ids)",
        (CLAIMS, "-k", "announced_twice"),
    ),
    Ablation(
        "P5",
        "Redis: an announced job is claimed under a valid lease only",
        CLAIM,
        "WHERE id = _worker AND lease_until > holdfast.clock() FOR KEY SHARE",
        "WHERE id = _worker FOR KEY SHARE",
        (CLAIMS, "-k", "valid_lease"),
    ),
    Ablation(
        "P9",
        "Redis: whatever a stream says, nobody gets a job of a queue that he does not serve",
        CLAIM,
        " AND r.queue = ANY (open.queues)",
        "",
        (CLAIMS, "-k", "nobody_asked_for"),
    ),
    Ablation(
        "P9",
        "Redis: a tenant's job waits for its turn, also when it is announced",
        CLAIM,
        " AND r.tag = 0",
        "",
        (CLAIMS, "-k", "its_turn"),
    ),
    Ablation(
        "P3",
        "Redis: a job that must run alone is not claimed among others",
        CLAIM,
        " AND r.losses < 2",
        "",
        (CLAIMS, "-k", "run_alone"),
    ),
    Ablation(
        "P1",
        "Redis: of every lane a tenth comes straight from the store",
        INTAKE,
        "STORE_SHARE = 0.1",
        "STORE_SHARE = 0.0",
        (DISPATCH, "-k", "also_in_a_backlog"),
    ),
    Ablation(
        "P1",
        "Redis: where announcements come short, the store is looked at",
        INTAKE,
        "            if missing > 0 and is_due:",
        "            if missing > 0 and lane in woken:",
        ("tests/unit/worker/test_intake.py",),
    ),
    Ablation(
        "P9",
        "Redis: a lane that was to be asked, and made way for what came by itself, keeps its turn",
        "src/holdfast/worker/fetcher.py",
        "            self._quotas.hint(lane)  # not asked now",
        "            pass  # not asked now",
        ("tests/attacks/test_redis_trickles.py",),
    ),
    Ablation(
        "P1",
        "Redis: what could not be announced is hinted of by the store",
        STREAMS + "publisher.py",
        "        self._on_undelivered()\n",
        "",
        (DISPATCH, "-k", "hinted_of"),
    ),
    Ablation(
        "P8",
        "Redis: a stream does not grow past its bound",
        STREAMS + "lua/publish.lua",
        "math.min(jobs, bound - length)",
        "jobs",
        (DISPATCH, "-k", "past_its_bound"),
    ),
    Ablation(
        "P8",
        "Redis: an old announcement brings no job into a queue that has no room",
        "src/holdfast/worker/fetcher.py",
        "        elif self._slots.rooms.get(job.queue) == 0:",
        "        elif False:",
        ("tests/attacks/test_redis_moved.py",),
    ),
    Ablation(
        "P8",
        "Redis: what was dealt with leaves the stream",
        STREAMS + "lua/fetch.lua",
        "    redis.call('XDEL', KEYS[i], unpack(ARGV, first, last))\n",
        "",
        (DISPATCH, "-k", "nothing_is_left"),
    ),
    Ablation(
        "P8",
        "Redis: what is not ours goes with whoever failed over it",
        STREAMS + "lua/recover.lua",
        " and (#fields[2] == 16 or fields[2] == '')",
        "",
        ("tests/attacks/test_redis_garbage.py", "-k", "not_given_to_the_next"),
    ),
    Ablation(
        "P8",
        "Redis: what is not ours is not sent to anybody",
        STREAMS + "lua/fetch.lua",
        " and (#fields[2] == 16 or fields[2] == '')",
        "",
        ("tests/attacks/test_redis_garbage.py", "-k", "not_sent"),
    ),
    Ablation(
        "P10",
        "Redis: an answer that no Redis gives is waited out",
        STREAMS + "examination.py",
        "    if not isinstance(text, bytes):",
        "    if False:",
        ("tests/attacks/test_redis_strange_servers.py", "-k", "waited_out"),
    ),
    Ablation(
        "P1",
        "Redis: a password that the server repeats is not logged",
        STREAMS + "wire.py",
        """        said = re.split("[`'\\"]", str(refusal))[0]""",
        "        said = str(refusal)",
        ("tests/attacks/test_redis_strange_servers.py", "-k", "not_repeated"),
    ),
    Ablation(
        "P8",
        "Redis: dead consumers are removed",
        STREAMS + "lua/recover.lua",
        "      if consumer[4] == 0 and",
        "      if false and",
        (DISPATCH, "-k", "it_is_forgotten"),
    ),
    Ablation(
        "P10",
        "Redis: what came by itself and finds no room is handed on",
        INTAKE,
        "            self._consumer.hand_on(self._held.pop(lane, ()))",
        "            self._held.pop(lane, ())",
        ("tests/unit/worker/test_intake.py", "-k", "no_room"),
    ),
    Ablation(
        "P10",
        "Redis: what comes to a worker that can begin nothing more goes on to others",
        "src/holdfast/worker/fetcher.py",
        "        if self._is_alone or not self._slots.free:\n            self._intake.hand_on()\n",
        "",
        ("tests/attacks/test_redis_occupied.py",),
    ),
    Ablation(
        "P10",
        "Redis: what was read and could not be claimed is claimed when the store answers",
        INTAKE,
        "            self._keep(entries)  # not acknowledged: they are claimed when the store answers again\n",
        "",
        ("tests/unit/worker/test_intake.py", "-k", "claimed_later"),
    ),
    Ablation(
        "P10",
        "Redis: a server that lost its memory is told anew of ready jobs",
        "src/holdfast/upkeep/courier.py",
        "                await self._transport.fill(queue, jobs)\n",
        "",
        (DISPATCH, "-k", "told_anew"),
    ),
    Ablation(
        "P5",
        "Redis: a cancelled command leaves no reply for the next",
        STREAMS + "wire.py",
        """        except BaseException:  # cancelled: a reply is on its way to nobody
            self.close()
            raise
""",
        "",
        (CONNECTION, "-k", "cancelled_command"),
    ),
    Ablation(
        "P1",
        "Redis: one that drops keys is refused",
        STREAMS + "examination.py",
        """    if policy != "noeviction":""",
        """    if not policy:""",
        (CONNECTION, "-k", "eviction"),
    ),
    Ablation(
        "P10",
        "Redis: a change of settings is heard of by way of it",
        STREAMS + "consumer.py",
        "            self._on_news()\n",
        "",
        (NEWS, "-k", "by_way_of_redis"),
    ),
    Ablation(
        "P10",
        "Redis Cluster: a slot that has moved is followed",
        STREAMS + "cluster_line.py",
        """                    case "MOVED":""",
        """                    case "-":""",
        (CLUSTER, "-k", "slot_that_moves"),
    ),
    Ablation(
        "P10",
        "Redis Cluster: a slot on its way is asked for where it goes",
        STREAMS + "cluster_line.py",
        """place, asking = _named(refusal, place), True""",
        """place, asking = _named(refusal, place), False""",
        (CLUSTER, "-k", "not_yet_on_the_new_node"),
    ),
    Ablation(
        "P10",
        "Redis Cluster: who has what is asked anew after a loss",
        STREAMS + "connection.py",
        """            await self._slots.look()
""",
        """            if not self._slots.masters():
                await self._slots.look()
""",
        (CLUSTER, "-k", "fail_over_is_survived"),
    ),
    Ablation(
        "P8",
        "Redis Cluster: a connection that is being made when all are given up is closed with the next ones",
        STREAMS + "cluster_line.py",
        "        for line in self._lines.values():",
        "        lines, self._lines = self._lines, {}\n        for line in lines.values():",
        ("tests/attacks/test_redis_given_up.py",),
    ),
    Ablation(
        "P1",
        "Redis Cluster: a node is not taken for a server of its own",
        STREAMS + "examination.py",
        """said.get("cluster_enabled") == "1" and""",
        """False and""",
        (CLUSTER, "-k", "taken_for_each_other"),
    ),
)
