"""The verbs of `corrigenda index` that hold the index against the ledger, and make it anew. Exit 13 if they differ."""

from typing import TYPE_CHECKING

import click

from cli.context import Session, pass_session
from cli.options import Verb, reads
from cli.output import give
from cli.progress import metered
from cli.text import count, inert, table

if TYPE_CHECKING:
    from gateway.shapes.replies.models import IndexCheck, IndexRebuild


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda index verify || corrigenda recover")
@reads
@pass_session
@click.pass_context
def verify(context: click.Context, session: Session, min_position: str | None) -> None:
    """Compare the index with what the ledger says, both ways, and search for some entries by their own vectors.

    Missing, stale, revoked and foreign entries are counted, and the first are named; exit 13. It changes nothing, and
    embeds nothing; `corrigenda recover` mends what it finds. What still waits in the outbox is no difference, nor what
    is parked there or was skipped.
    """
    with (
        session.gateway(create=False, replay=False, reach=min_position) as gateway,
        metered(session, ("compared", "items")) as meter,
    ):
        found = gateway.verify_index(progress=meter.show)
    give(session, found, lambda: _checked(found))
    context.exit(found.exit_code)


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda index rebuild\n  corrigenda index rebuild --progress -o json",
)
@pass_session
def rebuild(session: Session) -> None:
    """Build the index anew beside the live one, from the ledger and the stored vectors, and swap.

    The embedder is asked only for texts that have no stored vector. Everybody reads and writes on meanwhile.
    """
    with session.gateway(create=False, replay=False) as gateway, metered(session, ("gone through", "streams")) as meter:
        done = gateway.rebuild_index(progress=meter.show)
    give(session, done, lambda: _rebuilt(done))


def _checked(found: "IndexCheck") -> str:
    waiting = "".join(f"; {part}" for part in _left_out(found))
    if found.ok:
        return (
            f"ok: {count(found.entries, 'item')} in {count(found.partitions, 'partition')} are what the "
            f"ledger says at position {found.cursor}; {found.probed:,} came first when searched for{waiting}"
        )
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in found.counts.items() if number)
    lines = [
        f"NOT OK: the index is not what the ledger says at position {found.cursor}; exit {found.exit_code}{waiting}"
    ]
    lines += [kinds] if kinds else []
    lines += table(
        [(one.kind, inert(one.revision_id), "of", inert(one.item)) for one in found.differences]
    ).splitlines()
    lines += [f"not first when it is searched for: {inert(item)}" for item in found.unprobed]
    return "\n".join([*lines, "`corrigenda recover` mends it; `corrigenda index rebuild` makes it anew"])


def _left_out(found: "IndexCheck") -> list[str]:
    """Return what is not in the index, and is no difference."""
    parts = [
        (found.pending, "waiting in the outbox"),
        (found.parked, "parked there (`corrigenda outbox list --parked`)"),
        (found.skipped, "skipped for good"),
    ]
    return [f"{count(number, 'item')} {what}" for number, what in parts if number]


def _rebuilt(done: "IndexRebuild") -> str:
    kept = "" if done.kept else "\nanother process is publishing an index; this one is kept at the next occasion"
    return (
        f"{count(done.entries, 'item')} in the new index, {done.entries_before:,} in the old one\n"
        f"{count(done.embedded, 'text')} embedded, {count(done.carried, 'effect')} carried since it began{kept}"
    )
