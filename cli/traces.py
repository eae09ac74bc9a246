"""`corrigenda traces`: what single retrievals saw, chose and left out."""

from typing import TYPE_CHECKING

import click

from cli.context import Session, full_id, is_kind, pass_session
from cli.options import Noun, Verb, reads
from cli.output import give, give_stream, note
from cli.text import count
from cli.views import events
from cli.views import traces as views

if TYPE_CHECKING:
    from gateway.shapes.replies.traces import TraceSummary


@click.group("traces", cls=Noun)
def traces() -> None:
    """List, show and sweep what retrievals saw, chose and left out."""


@traces.command(
    "list",
    cls=Verb,
    epilog="With --limit the answer ends with a cursor, which goes on with the older ones, with the same filters. "
    "Without it everything is listed.\n\n"
    "\b\nExamples:\n  corrigenda traces list --session s1 --project ap\n"
    "  corrigenda traces list --kind dispatch --limit 20 -o json --project ap",
)
@click.option("--session", "conversation", metavar="S", help="Only those of this session.")
@click.option("--kind", type=click.Choice(("search", "dispatch")), help="Only those of this kind.")
@click.option("--limit", type=int, metavar="N", help="A page of at most so many, 1 to 1000.")
@click.option("--cursor", metavar="C", help="Where the page before ended.")
@reads
@pass_session
def list_(
    session: Session,
    conversation: str | None,
    kind: str | None,
    limit: int | None,
    cursor: str | None,
    min_position: str | None,
) -> None:
    """List the project's traces, newest first.

    Whoever does not operate the ledger sees those of its own retrievals, and those that were made for it.
    """
    session.require_project()
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        if limit is None:
            found = gateway.iterate_traces(session=conversation, kind=kind, cursor=cursor)
            shown, next_cursor = give_stream(session, found, lambda item: _line(session, item)), None
        else:
            page = gateway.list_traces(session=conversation, kind=kind, limit=limit, cursor=cursor)
            give(session, page, lambda: "\n".join(_line(session, item) for item in page.items), items="items")
            shown, next_cursor = len(page.items), page.next_cursor
            for warning in page.warnings:
                note(session, f"warning: {warning}")
    if not shown:
        note(session, "no retrieval was recorded here, or none is kept any longer")
    if next_cursor is not None:
        note(session, f"there are more: --cursor {next_cursor}")


@traces.command(cls=Verb, epilog="\b\nExample:\n  corrigenda traces show trc_01J9ZK -o json")
@click.argument("trace")
@reads
@pass_session
def show(session: Session, trace: str, min_position: str | None) -> None:
    """Show TRACE: what the retrieval was asked, chose and left out, and why.

    Of a receipt's trace_id, the events that its command stored.
    """
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        identifier = full_id(gateway, trace)
        if is_kind(identifier, "op"):
            stored = gateway.show_trace(identifier)
            give(session, stored, lambda: events.trace(stored), items="items")
            return
        found = gateway.search_trace(identifier)
    give(session, found, lambda: views.trace(found, paint=session.paint))


@traces.command(
    cls=Verb, epilog="\b\nExample:\n  corrigenda traces sweep --dry-run --database-url postgresql://owner@host/ledger"
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@pass_session
def sweep(session: Session, dry_run: bool) -> None:
    """Remove the traces that their projects do not keep any longer, as the maintainer.

    Each project's policy says how long: `corrigenda policy set trace_retention=30d`.
    """
    with session.bare(create=False) as bare:
        done = bare.sweep_traces(dry_run=dry_run)
    give(session, done, lambda: f"{count(done['traces'], 'trace')} {'would go' if dry_run else 'removed'}")


def _line(session: Session, item: "TraceSummary") -> str:
    return views.listed(item, wide=session.output == "wide")
