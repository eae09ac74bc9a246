"""`corrigenda outbox`: what the index has still to be told, and what could not be told. Exit 9 if a retry fails."""

from typing import TYPE_CHECKING, Any

import click

from cli.acts import give_receipt
from cli.context import Session, pass_session
from cli.exits import PARTIAL
from cli.options import Noun, Verb, reads, writes
from cli.output import give
from cli.text import count, inert, moment, table

if TYPE_CHECKING:
    from gateway.shapes.replies.upkeep import Outbox, OutboxItem, OutboxRetry


@click.group("outbox", cls=Noun)
def outbox() -> None:
    """List what waits for the index, and retry or skip what failed."""


@outbox.command(
    "list",
    cls=Verb,
    epilog="An item is waiting, failing (it is tried again) or parked (it waits for a person).\n\n"
    "\b\nExamples:\n  corrigenda outbox list\n  corrigenda outbox list --parked -o json",
)
@click.option("--parked", is_flag=True, help="Only what waits for a person.")
@click.option("--limit", type=int, metavar="N", help="At most so many, the oldest (50).")
@reads
@pass_session
def list_(session: Session, parked: bool, limit: int | None, min_position: str | None) -> None:
    """List what the index has still to be told, oldest first."""
    how: dict[str, Any] = {} if limit is None else {"limit": limit}  # Any: as the gateway's own arguments
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.outbox(parked=parked, **how)
    give(session, found, lambda: _table(found), items="items")


@outbox.command(cls=Verb, epilog="\b\nExample:\n  corrigenda outbox retry 812 815")
@click.argument("positions", nargs=-1, required=True, type=click.IntRange(min=0), metavar="SEQ…")
@pass_session
@click.pass_context
def retry(context: click.Context, session: Session, positions: tuple[int, ...]) -> None:
    """Try what failed at these positions anew, at once.

    Exit 9 if any of it fails again: it is parked again then.
    """
    with session.gateway(create=False, replay=False) as gateway:
        done = gateway.retry_outbox(positions)
    give(session, done, lambda: _retried(done))
    if not done.ok:
        context.exit(PARTIAL)


@outbox.command(
    cls=Verb, epilog='\b\nExample:\n  corrigenda outbox skip 812 --reason "a megabyte of zeros, nobody looks for it"'
)
@click.argument("position", type=click.IntRange(min=0), metavar="SEQ")
@writes(reason_required=True, names_revision=False)
@pass_session
def skip(session: Session, position: int, reason: str, idempotency_key: str | None, dry_run: bool) -> None:
    """Give up on what failed at a position: it stays out of the index, and an event says why."""
    with session.gateway(create=False, replay=False) as gateway:
        receipt = gateway.skip_outbox(position, reason=reason, idempotency_key=idempotency_key, dry_run=dry_run)
    give_receipt(session, receipt, dry_run=dry_run)


@outbox.command(
    cls=Verb, epilog="\b\nExample:\n  corrigenda outbox sweep --dry-run --database-url postgresql://owner@host/ledger"
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@pass_session
def sweep(session: Session, dry_run: bool) -> None:
    """Remove the rows that no replica of the index needs any more, as the maintainer.

    That is what every home that was used in the last seven days has in its index, and what is older than seven days. A
    replica that missed it makes the rows again from the events.
    """
    with session.bare(create=False) as bare:
        done = bare.sweep_outbox(dry_run=dry_run)
    verb = "would go" if dry_run else "removed"
    give(session, done, lambda: f"{count(done['rows'], 'row')} {verb}, up to position {done['mark']}")


def _table(found: "Outbox") -> str:
    if not found.items:
        return "nothing waits" if not found.pending else "nothing is parked"
    lines = table([("seq", "effect", "item", "state", "attempts", "since", "error"), *map(_row, found.items)])
    more = "\n…" if found.truncated else ""
    return f"{lines}{more}\n{found.pending:,} pending, {found.parked:,} parked"


def _row(item: "OutboxItem") -> tuple[str, ...]:
    at = moment(item.at) if item.at else ""
    return str(item.seq), item.effect, inert(item.id), item.state, str(item.attempts or ""), at, inert(item.code or "")


def _retried(done: "OutboxRetry") -> str:
    lines = [f"{count(len(done.settled), 'position')} settled"]
    if done.parked:
        lines.append(f"parked again: {', '.join(map(str, done.parked))}")
    return "\n".join(lines)
