"""What is withdrawn from a memory, and restored."""

from typing import Any

import click

from cli.acts import REV_NOTE, give_receipt
from cli.context import Session, full_id, pass_session
from cli.options import Verb, writes
from cli.output import give
from cli.views import memories


@click.command(cls=Verb, epilog=f'{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories retire pep-241 --reason "outdated"')
@click.argument("rev")
@writes()
@pass_session
def retire(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Withdraw REV as knowledge that no longer holds."""
    with session.gateway() as gateway:
        receipt = gateway.retire(full_id(gateway, rev), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb, epilog=f'{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories forget rev_01J9ZK --reason "she asked us to"'
)
@click.argument("rev")
@writes()
@pass_session
def forget(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Withdraw REV from view, and from being learned again.

    Its id stays known, its text is not shown, and neither an extraction nor an import brings the text back from the
    same source. The revision before it does not become the head. `restore` undoes it; to destroy the text, erase it.
    """
    with session.gateway() as gateway:
        receipt = gateway.forget(full_id(gateway, rev), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb, epilog=f'{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories revoke rev_01J9ZK --reason "poison"'
)
@click.argument("rev")
@writes(reason_required=True)
@pass_session
def revoke(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Revoke REV, with a reason.

    It is not served again, whatever an index still holds, unless it is restored. With --dry-run the answer is what
    would lose its trust.
    """
    if dry_run:
        with session.gateway() as gateway:
            impact = gateway.revoke(full_id(gateway, rev), dry_run=True, **how)
        give(session, impact, lambda: memories.impact(impact))
    else:
        with session.gateway() as gateway:
            receipt = gateway.revoke(full_id(gateway, rev), dry_run=False, **how)
        give_receipt(session, receipt, dry_run=False)


@click.command(cls=Verb, epilog='\b\nExample:\n  corrigenda memories restore pep-241 --reason "revoked by mistake"')
@click.argument("rev")
@writes()
@pass_session
def restore(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Undo the withdrawal of REV.

    What was forgotten, retired, invalidated or revoked last is undone first, by whoever may do what is undone. A
    memory means its revision that was withdrawn last.
    """
    with session.gateway() as gateway:
        receipt = gateway.restore(full_id(gateway, rev), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)
