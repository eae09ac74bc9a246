"""What a run is given of past corrections: those near a query, and the block for a prompt."""

from typing import TYPE_CHECKING, Any

import click

from cli.acts import TEXT_NOTE
from cli.context import Session, pass_session
from cli.exits import UNAVAILABLE
from cli.options import Verb, read_text, reads
from cli.output import give, note
from cli.views import corrections

if TYPE_CHECKING:
    from gateway.shapes.replies.corrections import Rendered

_K = click.option("-k", "k", type=int, metavar="N", help="At most so many; by default what the policy says (3).")
_MIN_SCORE = click.option(
    "--min-score", type=float, metavar="S", help="Only as near as this, 0 to 1; by default what the policy says (any)."
)
_USER = click.option("--user", metavar="U", help="As this user sees them.")
_ENTITY = click.option("--entity-key", metavar="K", help="Only those about this entity.")
_SESSION = click.option("--session", "conversation", metavar="S", help="As this session sees them.")


@click.command(
    cls=Verb,
    epilog=f"{TEXT_NOTE.replace('TEXT', 'QUERY')} Without --agent, --user and --session only what is visible to "
    "everybody is found.\n\n"
    '\b\nExample:\n  corrigenda corrections search "charge code of vendor X" --agent ap-reconciler --project ap',
)
@click.argument("query", callback=read_text)
@click.option("--agent", metavar="A", help="As this agent sees them.")
@_USER
@_SESSION
@_ENTITY
@_K
@_MIN_SCORE
@reads
@pass_session
def search(
    session: Session,
    query: str,
    conversation: str | None,
    min_position: str | None,
    **asked: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """Find corrections near QUERY.

    Every one is confirmed by the ledger; what an agent reported and nobody confirmed is among them, and says so.
    """
    session.require_project()
    with session.gateway(create=False) as gateway:
        found = gateway.search_corrections(query, session=conversation, min_position=min_position, **asked)
    give(session, found, lambda: corrections.hits(found), items="hits")
    for warning in found.warnings:
        note(session, f"warning: {warning}")
    if found.empty_reason:
        note(session, corrections.empty(found.empty_reason))


@click.command(
    cls=Verb,
    epilog=f"{TEXT_NOTE.replace('TEXT', 'QUERY')} Nothing that a correction says can close the block or begin a line "
    "in it. If it cannot be made, the text is empty and the exit 7.\n\n"
    '\b\nExample:\n  corrigenda corrections render "Reconcile INV-99" --agent ap-reconciler --budget 400 --project ap',
)
@click.argument("query", callback=read_text)
@click.option("--agent", required=True, metavar="A", help="The agent whose prompt it is.")
@_USER
@_SESSION
@_ENTITY
@_K
@_MIN_SCORE
@click.option("--budget", type=int, metavar="TOKENS", help="At most so many tokens; what does not fit is left out.")
@click.option("--learnings", type=int, default=0, show_default=True, metavar="N", help="Add at most so many learnings.")
@reads
@pass_session
@click.pass_context
def render(
    context: click.Context,
    session: Session,
    query: str,
    conversation: str | None,
    **asked: Any,  # Any: as in `search`
) -> None:
    """Print the block of past corrections for a prompt.

    It is empty if no correction is near.
    """
    session.require_project()
    made = _made(session, query, {"session": conversation, **asked})
    give(session, made, lambda: made.text)
    for warning in made.warnings:
        note(session, f"warning: {warning}")
    context.exit(UNAVAILABLE if made.failed else 0)


def _made(session: Session, query: str, asked: dict[str, Any]) -> "Rendered":  # Any: as in `search`
    from gateway.service.recalling import failed
    from ledger.errors import UnavailableError

    try:
        with session.gateway(create=False) as gateway:
            return gateway.render_corrections(query, **asked)
    except UnavailableError as error:  # nothing could be opened: what asks for a block is told in the block's own shape
        return failed(error)
