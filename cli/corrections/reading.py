"""What is asked about corrections: show, list, stats, eval-cases."""

from typing import Any

import click

from cli.acts import CURSOR_NOTE
from cli.context import Session, full_id, pass_session
from cli.options import Verb, read_moment, reads
from cli.output import give, give_stream, note, note_next
from cli.views import corrections

_SINCE = click.option(
    "--since", callback=read_moment, metavar="TIME", help="Only those recorded at this time or later."
)
_AGENT = click.option("--agent", metavar="A", help="Only those of this agent.")
_BY = ("agent", "period")


def _read_by(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    words = tuple(word.strip() for word in value.split(",")) if value is not None else ()
    if not set(words) <= set(_BY):
        raise click.BadParameter(f"{value!r} is not agent, period or agent,period.", ctx, param)
    return words


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda corrections show cor_01J9ZK")
@click.argument("correction", metavar="ID")
@reads
@pass_session
def show(session: Session, correction: str, min_position: str | None) -> None:
    """Show one correction, whatever its state."""
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.show_correction(full_id(gateway, correction))
    give(session, found, lambda: corrections.correction(found, paint=session.paint))


@click.command(
    "list",
    cls=Verb,
    epilog="The operator of the database sees all of the project's; --user and --session ask what one reader sees, "
    "which for everybody else is all there is.\n\n"
    f"{CURSOR_NOTE}\n\n"
    "\b\nExamples:\n  corrigenda corrections list --agent ap-reconciler --entity-key MSC --project ap\n"
    "  corrigenda corrections list --state revoked --since 2026-01-01T00:00:00Z -o jsonl --project ap",
)
@_AGENT
@click.option("--entity-key", metavar="K", help="Only those about this entity.")
@_SINCE
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="S",
    default=("unconfirmed", "active"),
    show_default=True,
    help="Only those that are unconfirmed, active, superseded or revoked; repeatable.",
)
@click.option("--user", metavar="U", help="As this user sees them.")
@click.option("--session", "conversation", metavar="S", help="As this session sees them.")
@click.option("--limit", type=int, metavar="N", help="A page of at most so many, 1 to 1000.")
@click.option("--cursor", metavar="C", help="Where the page before ended; with --limit.")
@reads
@pass_session
def list_(
    session: Session,
    conversation: str | None,
    limit: int | None,
    cursor: str | None,
    min_position: str | None,
    **asked: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """List corrections, oldest first.

    Those that are superseded or revoked only if --state says so.
    """
    session.require_project()
    if cursor is not None and limit is None:
        raise click.UsageError("--cursor goes on with a page; give --limit too.")
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        if limit is None:
            shown = give_stream(session, gateway.list_corrections(session=conversation, **asked), corrections.line)
            further = None
        else:
            page = gateway.page_corrections(session=conversation, limit=limit, cursor=cursor, **asked)
            give(session, page, lambda: "\n".join(map(corrections.line, page.items)), items="items")
            shown, further = len(page.items), page.next_cursor
    if not shown:
        note(session, "no such corrections")
    note_next(session, further)


@click.command(
    cls=Verb,
    epilog="Counted are those that are unconfirmed or active; one without an entity key or a field only in the total."
    "\n\n\b\nExamples:\n  corrigenda corrections stats --project ap\n"
    "  corrigenda corrections stats --by agent,period --period day --since 2026-01-01T00:00:00Z -o json --project ap",
)
@_AGENT
@_SINCE
@click.option("--by", callback=_read_by, metavar="WHAT", help="Also by agent, by period, or by both: agent,period.")
@click.option(
    "--period",
    type=click.Choice(("day", "month", "year")),
    default="month",
    show_default=True,
    help="How long a period is.",
)
@reads
@pass_session
def stats(
    session: Session,
    agent: str | None,
    since: str | None,
    by: tuple[str, ...],
    period: str,
    min_position: str | None,
) -> None:
    """Count corrections by entity, field, agent and period."""
    session.require_project()
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.correction_stats(agent=agent, since=since, by=by, period=period)
    give(session, found, lambda: corrections.stats(found))


@click.command(
    "eval-cases",
    cls=Verb,
    epilog="Each line is {input, expected, field, correction_id}. A case passes if what the agent puts out for its "
    "input contains what is expected, whatever the case of its letters: corrigenda.contains(output, expected) in "
    "Python says so.\n\n\b\nExample:\n  corrigenda corrections eval-cases --agent ap --project ap > cases.jsonl",
)
@_AGENT
@reads
@pass_session
def eval_cases(session: Session, agent: str | None, min_position: str | None) -> None:
    """Print regression cases as JSON lines.

    One for each active correction that was recorded with its --original-input.
    """
    session.require_project()
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.eval_cases(agent=agent)
    if not give_stream(session, found, corrections.eval_case):
        note(session, "no active correction was recorded with its --original-input")
