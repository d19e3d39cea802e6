"""The safeguards around limits and interruptions, above all in threads; each with the tests that must then go red."""

from __future__ import annotations

from tests.ablate.ablation import Ablation

INTERRUPTS = "src/holdfast/runtime/thread_interrupts.py"
STRIKES = "src/holdfast/worker/thread_strikes.py"
UNIT = ("tests/unit/runtime/test_thread_interrupts.py", "tests/unit/runtime/test_thread_interrupts_everywhere.py")
ON_A_WORKER = ("tests/integration/test_thread_limits.py",)

IN_THREADS = (
    Ablation(
        "limits",
        "an interruption that came too late is taken back before its thread is reused",
        INTERRUPTS,
        "        if self._struck:",
        "        if False:",
        UNIT,
    ),
    Ablation(
        "limits",
        "a function is interrupted under a lock, and a call is closed under the same",
        INTERRUPTS,
        """        with self._lock:
            if self._over:""",
        """        if True:
            if self._over:""",
        UNIT,
    ),
    Ablation(
        "limits",
        "a value is kept as soon as its function has returned it",
        INTERRUPTS,
        "            _ = kept[_VALUE]",
        "            kept[_VALUE] = context.run(self._fn)",
        UNIT,
    ),
    Ablation(
        "limits",
        "what is interrupted before it begins does not begin",
        INTERRUPTS,
        """                if self._early is not None:
                    raise self._early
""",
        "",
        UNIT,
    ),
    Ablation(
        "limits",
        "no function is interrupted while it logs or imports",
        INTERRUPTS,
        "if code.co_filename in _SPARED_FILES or",
        "if",
        UNIT,
    ),
    Ablation(
        "limits",
        "what may not be interrupted now is interrupted later",
        STRIKES,
        "            self._again = self._loop.call_later(_TRY_AGAIN_S, self._strike, error)",
        "            pass",
        ON_A_WORKER,
    ),
    Ablation(
        "limits",
        "a soft limit does not replace a cancellation that is on its way into a thread",
        STRIKES,
        "if self._run.interruption is None:  #",
        "if True:  #",
        ON_A_WORKER,
    ),
    Ablation(
        "limits",
        "a soft limit that meets a timeout inside the task comes after it",
        "src/holdfast/worker/soft_limit.py",
        """            self._pending = pending
            asyncio""",
        """            asyncio""",
        ("tests/unit/worker/test_soft_limit.py",),
    ),
)
