"""`corrigenda status`: one screen about the ledger. It answers on a broken chain too, and says so."""

import click

from cli.context import Session, pass_session
from cli.options import Verb, reads
from cli.output import give
from cli.views import upkeep


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda status -o json")
@reads
@pass_session
def status(session: Session, min_position: str | None) -> None:
    """Show the ledger and what is derived from it, on one screen."""
    with session.bare(create=False, reach=min_position) as bare:
        found = bare.status()
    give(session, found, lambda: upkeep.status(found))
