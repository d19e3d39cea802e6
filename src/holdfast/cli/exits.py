"""How a command ends: the exit codes, and for every error its code and what to try. Printing is in `output`."""

from __future__ import annotations

from enum import IntEnum

from holdfast.core.errors import (
    ConfigError,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOptions,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobStateError,
    NotUnique,
    OutcomeUnknown,
    QueueFull,
    StoreBroken,
    StoreError,
    StoreUnavailable,
)


class Exit(IntEnum):
    """Exit codes; scripts may rely on them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    STORE = 3
    MISSING = 4
    LATER = 5
    HANDED_BACK = 6
    BUG = 70
    INTERRUPTED = 130
    CLOSED_PIPE = 141

    @property
    def meaning(self) -> str:
        """What it says to a script."""
        return _MEANINGS[self]


_MEANINGS = {
    Exit.OK: "it was done; an awaited job succeeded",
    Exit.FAILED: "it was done, and the answer is bad: the awaited job ended dead or cancelled, `doctor` found a "
    "failure, `migrate --check` found something to apply, a confirmation was declined",
    Exit.USAGE: "the command, a setting, the app or an argument is wrong; nothing was done",
    Exit.STORE: "the store is missing, out of reach or unusable",
    Exit.MISSING: "there is no such job, or its state does not allow this",
    Exit.LATER: "not now: a queue stayed full, or `--timeout` passed; the same command may succeed later",
    Exit.HANDED_BACK: "`worker` was told to stop, and handed back jobs that had not ended in time: they run again",
    Exit.BUG: "an unexpected error, in Holdfast or in the app; `--debug` shows where",
    Exit.INTERRUPTED: "Ctrl-C (`worker`, `dev` and `demo`, asked to stop and having done so, end with 0 or 6)",
    Exit.CLOSED_PIPE: "the reader of the output went away, as `head` does",
}


class Refused(Exception):
    """A command that cannot be done as given: a sentence, what to try, and the exit code."""

    def __init__(self, sentence: str, *, hint: str = "", code: Exit = Exit.USAGE) -> None:
        self.hint = hint
        self.code = code
        super().__init__(sentence)


#: From special to general: the first that fits says the code and what to try.
_ERRORS: tuple[tuple[type[HoldfastError], Exit, str], ...] = (
    (ConfigError, Exit.USAGE, "`holdfast doctor` shows every setting and where it came from"),
    (InvalidArguments, Exit.USAGE, ""),
    (InvalidOptions, Exit.USAGE, ""),
    (IdempotencyConflict, Exit.USAGE, "`holdfast jobs show ID` shows the job that has the key"),
    (NotUnique, Exit.FAILED, "`holdfast jobs show ID` shows the job that is there already"),
    (QueueFull, Exit.LATER, "`holdfast queues list` shows how full the queues are"),
    (JobNotFound, Exit.MISSING, "`holdfast jobs list` shows the newest jobs of this store"),
    (JobStateError, Exit.MISSING, "`holdfast jobs explain ID` says where the job is and why"),
    (JobFailed, Exit.FAILED, "`holdfast dead show ID` shows its attempts, `holdfast dead replay ID` runs it again"),
    (JobCancelled, Exit.FAILED, ""),
    (OutcomeUnknown, Exit.STORE, "repeat it with the same `--key`: it is not done twice"),
    (StoreUnavailable, Exit.STORE, "`holdfast doctor` looks at the store and says what to do"),
    (StoreBroken, Exit.STORE, "`holdfast doctor` looks at the store and says what to do"),
    (StoreError, Exit.STORE, "`holdfast doctor` looks at the store and says what to do"),
)


def refusal(error: HoldfastError) -> Refused:
    """An error of the library in the command line's terms."""
    for kind, code, hint in _ERRORS:
        if isinstance(error, kind):
            return Refused(str(error), hint=hint, code=code)
    return Refused(str(error), code=Exit.FAILED)
