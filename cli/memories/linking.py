"""Which memory supersedes which, with neither touched."""

from typing import Any

import click

from cli.acts import give_receipt
from cli.context import Session, full_id, pass_session
from cli.options import Verb, writes


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda memories link pep-345 pep-314")
@click.argument("new")
@click.argument("old")
@writes(whose="NEW's")
@pass_session
def link(session: Session, new: str, old: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """State that memory NEW supersedes memory OLD.

    The states of both stay as they are. A cycle is refused.
    """
    with session.gateway() as gateway:
        receipt = gateway.link(full_id(gateway, new), full_id(gateway, old), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(cls=Verb, epilog='\b\nExample:\n  corrigenda memories unlink pep-345 pep-314 --reason "an error"')
@click.argument("new")
@click.argument("old")
@writes(reason_required=True, whose="NEW's")
@pass_session
def unlink(session: Session, new: str, old: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Withdraw, with a reason, that NEW supersedes OLD."""
    with session.gateway() as gateway:
        receipt = gateway.unlink(full_id(gateway, new), full_id(gateway, old), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)
