"""The tree of commands: the only module that knows all of them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.cli import (
    api,
    audit,
    breakers,
    dead,
    dev,
    doctor,
    enqueue,
    jobs,
    keys,
    limits,
    migrate,
    queues,
    routes,
    tasks,
    tenants,
    worker,
    workers,
)
from holdfast.cli.demo import command as demo
from holdfast.cli.session import help_if_alone

root = typer.Typer(
    name="holdfast",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
demo.add_to(root)
dev.add_to(root)
worker.add_to(root)
api.add_to(root)
enqueue.add_to(root)
root.add_typer(jobs.group, name="jobs")
root.add_typer(dead.group, name="dead")
root.add_typer(queues.group, name="queues")
root.add_typer(routes.group, name="routes")
root.add_typer(tasks.group, name="tasks")
root.add_typer(tenants.group, name="tenants")
root.add_typer(limits.group, name="limits")
root.add_typer(breakers.group, name="breakers")
root.add_typer(keys.group, name="keys")
audit.add_to(root)
workers.add_to(root)
migrate.add_to(root)
doctor.add_to(root)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"holdfast {__version__}\n")
        raise typer.Exit


@root.callback()
def holdfast(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Background work that is never lost, never silently run twice, and always visible.

    A command works on the app that -A names, as module:attribute, or on the store that --url names. Without either,
    settings say: the file holdfast.toml, and the variables HOLDFAST_APP and HOLDFAST_URL.

    \b
    holdfast demo                             see it at work
    holdfast dev shop.jobs:hf --postgres      develop: a server, and a worker that reloads
    holdfast worker shop.jobs:hf              run jobs until Ctrl-C
    holdfast api shop.jobs:hf                 serve the HTTP API
    holdfast enqueue shop.jobs:hf mail.send   enqueue a call
    holdfast jobs list --state running        what runs now
    holdfast jobs explain ID                  why a job waits
    holdfast dead replay --task shop.charge   run dead jobs again
    holdfast doctor                           what is wrong here, and what to do
    """
    help_if_alone(context)
