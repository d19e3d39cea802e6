"""Safeguards of routes that are set at run time: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

HEARD = "src/holdfast/client/heard_routes.py"
LOOKS = "tests/unit/client/test_heard_routes.py"
ROUTES = "tests/integration/test_routes_at_run_time.py"

OF_ROUTES = (
    Ablation(
        "routes",
        "a producer that has not looked for a second looks before it places a job",
        "src/holdfast/client/client.py",
        """            return handle
        if self._monotonic() >= self.heard.due_at:
            await self.heard.look()
""",
        """            return handle
        if self.heard.due_at < 0:
            await self.heard.look()
""",
        (ROUTES, "-k", "idle"),
    ),
    Ablation(
        "routes",
        "so it does before a batch",
        "src/holdfast/client/client.py",
        """            )
        if self._monotonic() >= self.heard.due_at:
            await self.heard.look()
""",
        """            )
""",
        (ROUTES, "-k", "every_way"),
    ),
    Ablation(
        "routes",
        "so it does before it enqueues in a caller's transaction",
        "src/holdfast/client/client.py",
        """options name.\"\"\"
        if self._monotonic() >= self.heard.due_at:
            await self.heard.look()
""",
        """options name.\"\"\"
""",
        ("tests/transactions/test_enqueue_inside.py", "-k", "operators"),
    ),
    Ablation(
        "routes",
        "what operators say goes before patterns of settings and code",
        "src/holdfast/client/placing.py",
        "(*operators.matching(request.task), *self.patterns.matching(request.task))",
        "(*self.patterns.matching(request.task), *operators.matching(request.task))",
        (ROUTES, "-k", "before_any"),
    ),
    Ablation(
        "routes",
        "all who come while a look is due share one question",
        HEARD,
        "            if self._look is None:\n",
        "            if True:\n",
        (LOOKS, "-k", "thousand"),
    ),
    Ablation(
        "routes",
        "an answer counts from when it was asked for",
        HEARD,
        "self._good_until = look.began_at + FRESH_S",
        "self._good_until = self._clock.monotonic() + FRESH_S",
        (LOOKS, "-k", "counts_from"),
    ),
    Ablation(
        "routes",
        "a store that cannot be asked where jobs go fails no enqueue",
        HEARD,
        "            if not look.heard:\n                return False\n",
        "            if not look.heard:\n                raise RuntimeError\n",
        (ROUTES, "-k", "cannot_be_asked"),
    ),
    Ablation(
        "routes",
        "a store that does not answer is not asked by everybody who comes",
        HEARD,
        "self._good_until if look.heard else self._clock.monotonic() + later",
        "self._good_until",
        (LOOKS, "-k", "without_an_answer"),
    ),
    Ablation(
        "routes",
        "a store that goes on not answering is asked more and more seldom",
        HEARD,
        "FRESH_S * 2 ** min(self._failures - 1, 8)",
        "FRESH_S",
        (LOOKS, "-k", "seldom"),
    ),
    Ablation(
        "routes",
        "nobody waits long for a store that says nothing",
        HEARD,
        "asyncio.timeout(PATIENCE_S)",
        "asyncio.timeout(600)",
        (LOOKS, "-k", "says_nothing", "--timeout=40"),
    ),
    Ablation(
        "routes",
        "what this process has changed is not answered by a question from before",
        HEARD,
        "        self.due_at = self._good_until = _NEVER\n        self._look = None\n",
        "        self.due_at = self._good_until = _NEVER\n",
        (LOOKS, "-k", "changed_itself", "--timeout=40"),
    ),
    Ablation(
        "routes",
        "a queue that nobody can have meant counts as not said",
        "src/holdfast/stores/route_rows.py",
        """        return check_name("queue", queue)
    except InvalidOptions:""",
        """        return str(queue) if queue else UNSET
    except InvalidOptions:""",
        ("tests/attacks/test_spoilt_settings.py", "-k", "sqlite and route"),
    ),
    Ablation(
        "routes",
        "a pattern that there cannot be counts as not there",
        "src/holdfast/stores/route_rows.py",
        "            check_pattern(pattern)\n",
        "            pass\n",
        ("tests/attacks/test_spoilt_settings.py", "-k", "sqlite and route"),
    ),
    Ablation(
        "routes",
        "what is no text at all hides no other route",
        "src/holdfast/stores/sqlite/sql/routes.sql",
        "SELECT CAST(pattern AS BLOB), CASE WHEN typeof(queue)",
        "SELECT pattern, CASE WHEN typeof(queue)",
        (ROUTES, "-k", "nonsense"),
    ),
    Ablation(
        "routes",
        "they are bounded in number",
        "src/holdfast/stores/route_rows.py",
        "    if count >= MOST_AT_RUN_TIME:",
        "    if False:",
        ("tests/contract/test_sqlite.py", "-k", "bounded_in_number"),
    ),
    Ablation(
        "routes",
        "of two operators who say different things of a pattern, neither takes back the other's word",
        "src/holdfast/client/routes.py",
        "by=who, only=only)",
        "by=who)",
        (ROUTES, "-k", "left_out"),
    ),
    Ablation(
        "routes",
        "the job of a bound key goes where it was allowed to, whatever is said meanwhile",
        "src/holdfast/http/routes/submitting.py",
        "        task = task.options(queue=queue)  #",
        "        #",
        ("tests/http/test_bound_keys.py", "-k", "speaks_after"),
    ),
    Ablation(
        "routes",
        "what operators say is known before a bound key's queue is checked",
        "src/holdfast/http/routes/submitting.py",
        "        await call.hf.routes.look()\n",
        "",
        ("tests/http/test_bound_keys.py", "-k", "follows_no_operator"),
    ),
)
