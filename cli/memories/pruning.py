"""Withdrawing what machines learned long ago."""

from typing import Any

import click

from cli.context import Session, pass_session
from cli.options import Verb
from cli.output import give
from cli.views import memories


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda memories prune --older-than 90d --dry-run\n"
    "  corrigenda memories prune --older-than 26w --user ana --project ap",
)
@click.option("--older-than", required=True, metavar="AGE", help="How old at least: 90d, 12h or 4w.")
@click.option("--include-untagged", is_flag=True, help="Also those of which is only known that they were imported.")
@click.option("--user", metavar="U", help="Only learnings about this user.")
@click.option("--reason", metavar="WHY", help="Why, for the record of each.")
@click.option("--dry-run", is_flag=True, help="Only say what would be withdrawn.")
@pass_session
def prune(session: Session, older_than: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Withdraw old learnings that nobody vouched for.

    Learnings that machines made are retired; those that a correction had invalidated are forgotten. What people said,
    and what was verified, stays. Repeated, it withdraws only what it had left, so it takes no idempotency key.
    """
    session.require_project()
    with session.gateway() as gateway:
        done = gateway.prune(older_than, dry_run=dry_run, **how)
    give(session, done, lambda: memories.pruned(done, dry_run=dry_run))
