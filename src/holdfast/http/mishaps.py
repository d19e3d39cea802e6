"""What nobody expected: logged without its words, which may hold arguments, and told as a problem without any."""

from __future__ import annotations

import logging
import traceback

from holdfast.http.problem import Problem
from holdfast.http.problems import UNEXPECTED

_log = logging.getLogger("holdfast.http")


def unexpected(error: Exception, *, where: str, request_id: str) -> Problem:
    """What the client is told, once it is in the log."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s: unexpected %s (request %s)\n%s", where, type(error).__name__, request_id, frames)
    return Problem(UNEXPECTED, "the server has failed to do this; it was told in its log")
