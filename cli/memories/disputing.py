"""What is called into doubt, decided between, and vouched for."""

from typing import Any

import click

from cli.acts import REV_NOTE, give_receipt
from cli.context import Session, full_id, pass_session
from cli.options import Verb, writes


@click.command(
    cls=Verb,
    epilog=f'{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories contest rev_01J9ZK rev_01J9ZM --reason "both cannot be"',
)
@click.argument("rev")
@click.argument("other")
@writes()
@pass_session
def contest(session: Session, rev: str, other: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """State that REV and OTHER contradict each other.

    Both are revisions of one memory. Neither is served until one of them is promoted.
    """
    with session.gateway() as gateway:
        receipt = gateway.contest(full_id(gateway, rev), full_id(gateway, other), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb,
    epilog=f"{REV_NOTE}\n\n\b\nExamples:\n  corrigenda memories promote rev_01J9ZK\n"
    '  corrigenda memories promote rev_01J9ZK --expected-active rev_01J9ZN --reason "measured again"',
)
@click.argument("rev")
@click.option("--expected-active", metavar="REV", help="The head that REV supersedes; leave it out if there is none.")
@writes()
@pass_session
def promote(
    session: Session,
    rev: str,
    expected_active: str | None,
    dry_run: bool,
    **how: Any,  # Any: as in `remember`
) -> None:
    """Let the contested REV win.

    It becomes the head of its memory; those that it contradicted are rejected.
    """
    with session.gateway() as gateway:
        expected = None if expected_active is None else full_id(gateway, expected_active)
        receipt = gateway.promote(full_id(gateway, rev), expected_active=expected, dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb, epilog=f'{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories reject rev_01J9ZK --reason "never measured"'
)
@click.argument("rev")
@writes()
@pass_session
def reject(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Turn down the held or contested REV.

    Whom it contradicted stays contested. An active revision is corrected or contested instead.
    """
    with session.gateway() as gateway:
        receipt = gateway.reject_revision(full_id(gateway, rev), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb,
    epilog=f'{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories admit rev_01J9ZK --reason "it is in the contract"',
)
@click.argument("rev")
@click.option("--evidence", multiple=True, metavar="HASH", help="Evidence that is kept here, b3:…; repeatable.")
@writes(reason_required=True)
@pass_session
def admit(
    session: Session,
    rev: str,
    evidence: tuple[str, ...],
    dry_run: bool,
    **how: Any,  # Any: as in `remember`
) -> None:
    """Vouch, with a reason, for REV of somebody else.

    REV is verified from then on, and `search --min-trust verified` finds it. Nobody vouches for a text of their own,
    unless the project's policy is verifier_is_producer=allow.
    """
    with session.gateway() as gateway:
        receipt = gateway.admit(full_id(gateway, rev), evidence=evidence, dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)
