"""`corrigenda recover`: the start-up recovery by hand. Exit 9 while something needs a person."""

import click

from cli.context import Session, pass_session
from cli.exits import PARTIAL
from cli.options import Verb
from cli.output import give
from cli.progress import metered
from cli.views import upkeep

_PHASES = (("replayed", "items"), ("tried again", "times"))


@click.command(cls=Verb, epilog="\b\nExamples:\n  corrigenda recover --check-only\n  corrigenda recover -o json")
@click.option("--check-only", is_flag=True, help="Only say what stands between the index and the ledger.")
@click.option("--dry-run", is_flag=True, help="Say what would be replayed; change nothing.")
@click.option("--only", metavar="PART,…", help="Only these parts: index, outbox, claims.")
@pass_session
@click.pass_context
def recover(context: click.Context, session: Session, check_only: bool, dry_run: bool, only: str | None) -> None:
    """Run the start-up recovery by hand.

    It replays what a killed process left undone, tries again what failed, and says what needs a person: exit 9 while
    anything is parked that the configured embedder failed on (`corrigenda outbox list --parked`). A text on which the
    embedder hangs takes less than four minutes in all, with what is embedded beside it; Ctrl-C leaves it waiting.
    """
    parts = {} if only is None else {"only": tuple(part.strip() for part in only.split(","))}
    with session.gateway(create=False, replay=False) as gateway, metered(session, *_PHASES) as meter:
        done = gateway.recover(check_only=check_only, dry_run=dry_run, progress=meter.show, **parts)
    give(session, done, lambda: upkeep.recovery(done, changes=not (check_only or dry_run)))
    if not done.ok:
        context.exit(PARTIAL)
