"""`show`, `history`, `explain` and `log`: what a reader asks about the past. None of them writes."""

import sys

import click

from cli import views
from cli.context import Session, full_id, pass_session
from cli.options import Range, Verb, read_event_type, read_moment, read_range, reads
from cli.output import give, give_stream, note, text_only, writing


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda show pep-241 --project peps\n  corrigenda show 812\n"
    "  corrigenda show 812 --raw | sha256sum",
)
@click.argument("what", metavar="ID|SEQ")
@click.option("--raw", is_flag=True, help="Print the hashed bytes of the event, exactly.")
@reads
@pass_session
def show(session: Session, what: str, raw: bool, min_position: str | None) -> None:
    """Show a revision, the head of a memory, or one event.

    A number is the position of an event. With --raw an id means the event that recorded its revision.
    """
    seq = int(what) if what.isascii() and what.isdigit() else None
    if raw:
        _show_raw(session, what, seq, min_position)
    elif seq is not None:
        with session.gateway(create=False, replay=False, reach=min_position) as gateway:
            event = gateway.show_event(seq)
        give(session, event, lambda: views.event(event))
    else:
        with session.gateway(create=False, replay=False, reach=min_position) as gateway:
            revision = gateway.show(full_id(gateway, what))
        give(session, revision, lambda: views.revision(revision, paint=session.paint))


def _show_raw(session: Session, what: str, seq: int | None, min_position: str | None) -> None:
    text_only(session, "--raw prints the bytes themselves")
    if seq is None:
        with session.gateway(create=False, replay=False, reach=min_position) as gateway:
            stored = gateway.raw(gateway.show(full_id(gateway, what)).position)
    else:
        with session.bare(create=False, reach=min_position) as bare:
            stored = bare.raw(seq)
    with writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(stored)


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda history pep-241 --project peps")
@click.argument("memory", metavar="ID")
@reads
@pass_session
def history(session: Session, memory: str, min_position: str | None) -> None:
    """Show every revision of a memory, in version order."""
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.history(full_id(gateway, memory))
    give(session, found, lambda: views.history(found, paint=session.paint), items="items")


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda explain rev_01J9ZK")
@click.argument("what", metavar="ID")
@reads
@pass_session
def explain(session: Session, what: str, min_position: str | None) -> None:
    """Tell why a revision stands as it does.

    What happened to it, who did it and why, and what stands in its place.
    """
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        story = gateway.explain(full_id(gateway, what))
    give(session, story, lambda: views.explanation(story, paint=session.paint))


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda log --oneline --limit 20\n  corrigenda log 100..200 --reverse -o jsonl\n"
    "  corrigenda log --type revision.revoked.v1 --since 2026-01-01T00:00:00Z",
)
@click.argument("positions", metavar="[A..B]", required=False, callback=read_range)
@click.option("--type", "type_", callback=read_event_type, metavar="TAG", help="Only events of this type.")
@click.option("--actor", "by", metavar="WHO", help="Only what this actor did.")
@click.option("--stream", metavar="ID", help="Only this stream.")
@click.option("--since", callback=read_moment, metavar="TIME", help="Not before this time.")
@click.option("--until", callback=read_moment, metavar="TIME", help="Not after this time.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many; without it, all.")
@click.option("--reverse", is_flag=True, help="Oldest first.")
@click.option("--oneline", is_flag=True, help="One line per event.")
@reads
@pass_session
def log(
    session: Session,
    positions: Range,
    type_: str | None,
    by: str | None,
    stream: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    reverse: bool,
    oneline: bool,
    min_position: str | None,
) -> None:
    """List the ledger's events, newest first.

    It answers on a broken chain too.
    """
    if oneline and session.machine:
        raise click.UsageError(f"--oneline is for people; leave out -o {session.output}.")
    first, last = positions
    with session.bare(create=False, reach=min_position) as bare:
        found = bare.log(
            after=first - 1 if first else None,
            before=None if last is None else last + 1,
            type=type_,
            actor=by,
            stream=stream,
            since=since,
            until=until,
            limit=limit,
            reverse=reverse,
        )
        text, between = (views.event_line, "") if oneline else (views.event, "\n")
        if not give_stream(session, found, text, between=between):
            note(session, "no event matches")
