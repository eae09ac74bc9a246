"""Finding memories."""

from typing import Any

import click

from cli import views
from cli.acts import KINDS_NOTE, TEXT_NOTE
from cli.context import Session, pass_session
from cli.options import Verb, read_text, reads
from cli.output import give, note


@click.command(
    cls=Verb,
    epilog=f"{TEXT_NOTE.replace('TEXT', 'QUERY')}\n\n"
    '\b\nExamples:\n  corrigenda memories search "where does the user live?" --project ap\n'
    '  corrigenda memories search "metadata version" -k 3 --kind fact -o jsonl',
)
@click.argument("query", callback=read_text)
@click.option("-k", "k", type=int, default=5, show_default=True, metavar="N", help="At most so many hits.")
@click.option("--min-trust", type=click.Choice(("unverified", "verified")), default="unverified", show_default=True)
@click.option("--kind", "kinds", multiple=True, metavar="K", help=f"Only this kind: {KINDS_NOTE}; repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only with this tag; repeatable.")
@click.option("--agent", metavar="A", help="As this agent sees it.")
@click.option("--user", metavar="U", help="As this user sees it.")
@click.option("--session", "conversation", metavar="S", help="As this session sees it.")
@reads
@pass_session
def search(
    session: Session,
    query: str,
    conversation: str | None,
    min_position: str | None,
    **rest: Any,  # Any: as in `remember`
) -> None:
    """Find memories near QUERY.

    Every hit is confirmed by the ledger, and says whether it is verified or unverified.
    """
    session.require_project()
    with session.gateway(create=False) as gateway:
        found = gateway.search(query, session=conversation, min_position=min_position, **rest)
    give(session, found, lambda: views.hits(found, paint=session.paint), items="hits")
    for warning in found.warnings:
        note(session, f"warning: {warning}")
    if found.empty_reason:
        note(session, views.empty(found.empty_reason, found.warnings))
