"""The safeguards of the HTTP API: how each is taken out, and which tests must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

HTTP = "src/holdfast/http/"
TESTS = "tests/http/"
REFUSALS = TESTS + "test_refusals.py"

OF_HTTP = (
    Ablation(
        "http",
        "a key does only what its scopes say",
        HTTP + "caller.py",
        "if scope not in self.scopes:",
        "if False:",
        (TESTS + "test_matrix.py", "-k", "cancel or audit"),
    ),
    Ablation(
        "http",
        "a tenant's key sees and touches only that tenant's jobs",
        HTTP + "caller.py",
        "(self.tenant is None or job.tenant == self.tenant) and",
        "True and",
        (TESTS + "test_bound_keys.py", "-k", "bulk"),
    ),
    Ablation(
        "http",
        "filters of a bound key are narrowed to what is its own",
        HTTP + "caller.py",
        'filters = filters | {"tenant": self.tenant}',
        "pass",
        (TESTS + "test_bound_keys.py", "-k", "bulk or status"),
    ),
    Ablation(
        "http",
        "every item of a batch is held to the key's tenant",
        HTTP + "routes/submitting.py",
        "        call.caller.check_tenant(body.tenant)\n",
        "        pass\n",
        (TESTS + "test_bound_keys.py", "-k", "submits"),
    ),
    Ablation(
        "http",
        "a job goes to no queue that the key is not for, whoever routes it",
        HTTP + "routes/submitting.py",
        "    if call.caller.queues is not None:\n",
        "    if False:\n",
        (TESTS + "test_bound_keys.py", "-k", "no_other"),
    ),
    Ablation(
        "http",
        "what concerns everybody is closed to a bound key",
        HTTP + "caller.py",
        "if reach is Reach.CLUSTER and",
        "if False and",
        (TESTS + "test_bound_keys.py", "-k", "no_other"),
    ),
    Ablation(
        "http",
        "payloads are told only with the scope for them",
        HTTP + "views.py",
        "payload=_payload(job) if payloads else None",
        "payload=_payload(job)",
        (TESTS + "test_reading.py", "-k", "without_the_scope"),
    ),
    Ablation(
        "http",
        "a body is refused before it is read",
        HTTP + "json_body.py",
        "                if length > most:\n                    raise _too_large(most)\n",
        "",
        (REFUSALS, "-k", "before_it_is_read"),
    ),
    Ablation(
        "http",
        "two members of one name are refused",
        HTTP + "json_body.py",
        "if len(made) < len(pairs):",
        "if False:",
        (REFUSALS, "-k", "cannot_be_kept"),
    ),
    Ablation(
        "http",
        "whoever fails too often is not listened to",
        HTTP + "door.py",
        "            self._failures.take(address, now)\n",
        "",
        (REFUSALS, "-k", "fails_too_often"),
    ),
    Ablation(
        "http",
        "pages of other sites are refused",
        HTTP + "door.py",
        "        check_site(request, self._origins)\n",
        "",
        (REFUSALS, "-k", "another_site"),
    ),
    Ablation(
        "http",
        "a failure of ours is logged without its words",
        HTTP + "door.py",
        '_log.error("%s: unexpected %s (request %s)\\n%s", where, type(error).__name__, request_id, frames)',
        '_log.error("%s: unexpected %s (request %s)\\n%s", where, repr(error), request_id, frames)',
        (REFUSALS, "-k", "without_its_words"),
    ),
    Ablation(
        "http",
        "a revoked key opens nothing after a second",
        HTTP + "keyring.py",
        "if found is not None and self._monotonic() - found[1] < FRESH_S:",
        "if found is not None:",
        (TESTS + "test_keys.py", "-k", "looked_up"),
    ),
    Ablation(
        "http",
        "streams end when the server stops",
        HTTP + "serving.py",
        "        self._app.server.stop_streams()\n",
        "",
        (TESTS + "test_events.py", "-k", "server_stops"),
    ),
    Ablation(
        "http",
        "only so many may follow",
        HTTP + "streams.py",
        "return self.count >= self._most",
        "return False",
        (TESTS + "test_events.py", "-k", "only_so_many"),
    ),
    Ablation(
        "http",
        "it listens elsewhere only once there is a key",
        "src/holdfast/cli/api.py",
        "if not serving.is_loopback(host) and not has_keys",
        "if False and not has_keys",
        ("tests/cli/test_api.py", "-k", "only_once_there_is_a_key"),
    ),
)
