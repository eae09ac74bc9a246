"""The root of `corrigenda`: which commands there are, and where each is to be found when it is called.

Only click is imported before that, so that help and typing errors come at once.
"""

import importlib
import io
import sys
from collections.abc import Sequence

import click

from cli import exits
from cli.context import Session, pass_session
from cli.options import LazyNoun, Verb
from cli.output import give, print_text, text_only

_COMMANDS = {
    "demo": ("cli.main", "demo", "The whole story on a server of its own, in under a minute."),
    "memories": ("cli.memories", "memories", "Remember, correct, withdraw, dispute, link and search memories."),
    "corrections": (
        "cli.corrections",
        "corrections",
        "Record, confirm, supersede, revoke, find, render and count corrections.",
    ),
    "show": ("cli.audit", "show", "Show a revision, the head of a memory, a correction, or events."),
    "history": ("cli.past", "history", "Show every revision of a memory, in version order."),
    "lineage": ("cli.lineage", "lineage", "Draw what superseded what."),
    "explain": ("cli.past", "explain", "Tell why a revision or a correction stands as it does, or stood."),
    "diff": ("cli.past", "diff", "Show what differs between two revisions, or what changed between two positions."),
    "log": ("cli.audit", "log", "List the ledger's events, newest first."),
    "status": ("cli.status", "status", "Show the ledger and what is derived from it, on one screen."),
    "doctor": ("cli.doctor", "doctor", "Check this installation, one line per check with its mend."),
    "verify": ("cli.verify", "verify", "Check every byte of the ledger that can be checked."),
    "checkpoint": ("cli.checkpoint", "checkpoint", "Sign what the ledger is now, and compare what was signed."),
    "evidence": ("cli.evidence", "evidence", "Keep and show evidence by its hash."),
    "traces": ("cli.traces", "traces", "List, show and sweep what retrievals saw, chose and left out."),
    "policy": ("cli.policy", "policy", "Show and set how a project wants things done."),
    "keys": ("cli.keys", "keys", "Make and list the ledger's keys, and print the public one."),
    "export": ("cli.export", "export", "Hand histories to an outsider with the proofs, or write them as lines."),
    "projections": ("cli.models", "projections", "Rebuild and check the read models, and say how far they are."),
    "index": ("cli.index", "index", "Check the index, make it or embed it anew, and say how far it is."),
    "outbox": ("cli.outbox", "outbox", "List what waits for the index, and retry or skip what failed."),
    "recover": ("cli.recover", "recover", "Run the start-up recovery by hand."),
    "import": ("cli.imports", "import_", "Import a file; importing it twice stores nothing twice."),
    "db": ("cli.db", "db", "Make, migrate and check the database."),
    "version": ("cli.main", "version", "Print the version."),
}

_EPILOG = """\b
Ids that begin with mem_, rev_ or cor_ may be abbreviated to six characters or more
after the underscore, if that is unambiguous.

\b
Examples:
  corrigenda demo
  corrigenda memories remember "user lives in Berlin" --project ap
  corrigenda memories correct mem_01J9ZK "user lives in Hamburg" --reason "moved" --project ap
  corrigenda memories search "where does the user live?" --project ap -o json
  corrigenda verify

\b
Exits: 0 done, 1 unexpected, 2 usage, 3 not found, 4 authority, 5 conflict or refusal, 6 in flight,
7 unavailable, 9 partial, 10 chain broken, 11 anchor or checkpoint mismatch, 12 read models differ,
13 index differs, 14 bundle invalid, 15 could not be verified, 130 interrupted.
"""


@click.group("corrigenda", cls=LazyNoun, lazy=_COMMANDS, epilog=_EPILOG, invoke_without_command=True)
@click.option("--version", "wants_version", is_flag=True, help="Print the version.")
@pass_session
@click.pass_context
def corrigenda(context: click.Context, session: Session, wants_version: bool) -> None:
    """The ledger of record for what AI agents remember, and for every correction to it."""
    if wants_version:
        _print_version(session)
        context.exit()
    if context.invoked_subcommand is None:
        print_text(context.get_help())


@click.command("version", cls=Verb)
@pass_session
def version(session: Session) -> None:
    """Print the version."""
    _print_version(session)


def _print_version(session: Session) -> None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        number = installed("corrigenda")
    except PackageNotFoundError:  # run from a source tree
        number = "unknown"
    give(session, {"version": number}, lambda: f"corrigenda {number}")


@click.command("demo", cls=Verb)
@click.option("--keep", is_flag=True, help="Keep the demo's home, and print how to use it.")
@pass_session
@click.pass_context
def demo(context: click.Context, session: Session, keep: bool) -> None:
    """The whole story on a server of its own, in under a minute.

    Exit 0 only if every claim that it makes was checked and held.
    """
    text_only(session, "the demo tells a story to a person")
    for name in ("project", "tenant", "actor", "database_url", "home"):
        if getattr(session, name) is not None:
            raise click.UsageError(f"the demo makes everything anew; leave out --{name.replace('_', '-')}.")
    context.exit(importlib.import_module("cli.demo").run(keep))


def main(args: Sequence[str] | None = None) -> None:
    """Run `corrigenda` with the process's arguments, or with these, and leave with its exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(exits.run(corrigenda, sys.argv[1:] if args is None else args))
