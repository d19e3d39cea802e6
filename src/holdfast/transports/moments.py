"""The moments on a transport's way at which a test can strike; the same for every transport."""

from __future__ import annotations

from typing import Final

from holdfast.runtime.failpoints import declare

PUBLISH_BEGIN: Final = declare("publish.begin", "publish: jobs are committed, and not announced")
PUBLISH_DONE: Final = declare("publish.done", "publish: jobs are announced, and who announced them does not know")
FETCH_BEGIN: Final = declare("fetch.begin", "fetch: announcements are about to be read")
FETCH_DONE: Final = declare("fetch.done", "fetch: announcements are read, nothing is claimed")
FETCH_CLAIMED: Final = declare("fetch.claimed", "fetch: their jobs are claimed, the announcements not acknowledged")
