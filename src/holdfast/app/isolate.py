"""The program of an isolate: imports the app that its worker runs, opens it, and serves the worker.

python -c … PARENT SYS.PATH… FD      FD is a socket whose other end only the worker holds
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.machinery
import importlib.util
import logging
import signal
import sys
import traceback
from collections.abc import AsyncIterator

from holdfast.app.holdfast import Holdfast
from holdfast.app.log_output import set_up_logs
from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.runtime.daemon_executor import DaemonExecutor
from holdfast.runtime.loop import run_loop
from holdfast.runtime.processes import die_with_parent
from holdfast.runtime.threads import ThreadPool
from holdfast.worker.executor import Executor
from holdfast.worker.isolation.process import Link, Server
from holdfast.worker.isolation.wire import Message
from holdfast.worker.lifecycle import Lifecycle


def main() -> None:
    """Serve the worker until it wants an end, or has gone."""
    die_with_parent(int(sys.argv[1]))
    # Service managers signal all processes of a service: what that means for this one is for its worker to say. Not
    # ignored, which what tasks start would inherit.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    link = Link(int(sys.argv[-1]))
    first = link.receive()
    if first is None:
        return
    sys.argv = first["argv"]
    log = logging.getLogger("holdfast")
    log.setLevel(first["log_level"])  # before the app is made: it looks at it then
    try:
        app = _load(first)
    except (Exception, SystemExit) as error:
        link.send({"failed": _told(error)})
        return
    app.config = app.config.with_arguments(**first["settings"])
    set_up_logs(app.config.log_format)
    run_loop(_live(link, app))


async def _live(link: Link, app: Holdfast) -> None:
    asyncio.get_running_loop().set_default_executor(DaemonExecutor())
    server = Server(link)
    server.listen()
    async with contextlib.AsyncExitStack() as stack:
        try:
            executor = await stack.enter_async_context(_begun(app))
        except Exception as error:
            link.send({"failed": _told(error)})
            return
        await server.serve(executor)


@contextlib.asynccontextmanager
async def _begun(app: Holdfast) -> AsyncIterator[Executor]:
    """The app open, and all done that users want done before the first job; as in a worker."""
    threads = ThreadPool(app.config.threads, name="holdfast-task")
    life_around = Lifecycle(app._hooks, threads=threads, telemetry=app.telemetry)
    async with app:
        try:
            await life_around.begin([task for task in app.tasks if task.options.isolate])
            yield Executor(
                app.tasks,
                app._open_store(),
                app.config,
                threads=threads,
                telemetry=app.telemetry,
                providers=life_around.providers,
                middleware=app._hooks.middleware,
                errors=app._hooks.errors,
            )
        finally:
            await life_around.end()
            threads.close()


def _load(first: Message) -> Holdfast:
    """The app, with all of its tasks."""
    if first["script"] is not None:
        _import_script(*first["script"])
    for name in first["modules"]:
        importlib.import_module(name)
    module, _, attribute = first["app"].partition(":")
    app: object = sys.modules[module]
    for part in attribute.split("."):
        app = getattr(app, part, None)
    if not isinstance(app, Holdfast):
        raise ConfigError(f"{first['app']} is not the app when {module} is imported: make it at the top of the module")
    if missing := [name for name in first["tasks"] if app.tasks.get(name) is None]:
        raise ConfigError(
            f"{first['app']} has no task {missing[0]} when its modules are imported: define it at the top of a module, "
            "not in a function and not under `if __name__ == '__main__'`"
        )
    return app


def _import_script(name: str, path: str) -> None:
    """A file under the name of a module, so that what it does as a program is left out."""
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)


def _told(error: BaseException) -> str:
    """The error, and where it came from if that is the user's code, in one line."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "importlib" not in each.filename]
    where = (
        "" if isinstance(error, HoldfastError) or not frames else f" ({frames[-1].filename}, line {frames[-1].lineno})"
    )
    return f"{type(error).__name__}: {error}{where}"
