"""`show` and `log`: what a reader asks about revisions and events. Neither writes."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from cli.context import Session, full_id, is_kind, pass_session
from cli.options import Range, Verb, read_event_type, read_moment, read_range, reads
from cli.output import flush, give, give_stream, note, print_bytes, print_text, text_only
from cli.views import columns, corrections, events, memories, traces

if TYPE_CHECKING:
    from gateway.service import Gateway
    from gateway.shapes.replies.log import LogItem
    from gateway.shapes.replies.memories import Revision
    from gateway.upkeep.bare import BareGateway
    from ledger.errors import CorrigendaError


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda show pep-241 --project peps\n  corrigenda show 812\n"
    "  corrigenda show 812 --raw | sha256sum\n"
    "  corrigenda show op_01J9ZK",
)
@click.argument("what", metavar="ID|SEQ|TRACE")
@click.option("--raw", is_flag=True, help="Print the hashed bytes of the event, exactly.")
@reads
@pass_session
def show(session: Session, what: str, raw: bool, min_position: str | None) -> None:
    """Show a revision, the head of a memory, a correction, or events.

    A number is the position of an event, also where a memory is so named: that one is shown by `memories show`. A
    receipt's trace_id stands for all that its command stored, a search's for what it chose and left out. With --raw an
    id means the event that recorded it, a receipt's trace its first one.
    """
    seq = int(what) if what.isascii() and what.isdigit() else None
    if raw:
        _show_raw(session, what, seq, min_position)
    elif seq is not None:
        with session.gateway(create=False, replay=False, reach=min_position) as gateway:
            event = gateway.show_event(seq)
            named = _is_named(session, gateway, what)
        give(session, event, lambda: events.event(event))
        if named:
            note(session, f"a memory is named {what}, too: `corrigenda memories show {what}` shows that one")
    else:
        with session.gateway(create=False, replay=False, reach=min_position) as gateway:
            _show_item(session, gateway, full_id(gateway, what))


def _is_named(session: Session, gateway: "Gateway", word: str) -> bool:
    """Report whether a caller named a memory by a word that was taken for something else; asked for people only."""
    from ledger.errors import NotFoundError

    if session.machine or not session.has_project:
        return False
    try:
        gateway.show(word)
    except NotFoundError:
        return False
    return True


def _show_item(session: Session, gateway: "Gateway", identifier: str) -> None:
    if is_kind(identifier, "op"):
        trace = gateway.show_trace(identifier)
        give(session, trace, lambda: events.trace(trace), items="items")
    elif is_kind(identifier, "trc"):
        seen = gateway.search_trace(identifier)
        give(session, seen, lambda: traces.trace(seen, paint=session.paint))
    elif is_kind(identifier, "cor"):
        correction = gateway.show_correction(identifier)
        give(session, correction, lambda: corrections.correction(correction, paint=session.paint))
    else:
        revision = _revision(gateway, identifier)
        give(session, revision, lambda: memories.revision(revision, paint=session.paint))


def _revision(gateway: "Gateway", identifier: str) -> "Revision":
    """Return a revision. Of what abbreviates an id of another kind, and completes to none, that kind is not found."""
    from ledger.errors import NotFoundError
    from ledger.ids import is_prefix_of_ours, kind_of

    try:
        return gateway.show(identifier)  # a caller may have named a memory so
    except NotFoundError:
        others = {"op": gateway.show_trace, "trc": gateway.search_trace, "cor": gateway.show_correction}
        if is_prefix_of_ours(identifier) and kind_of(identifier) in others:
            others[kind_of(identifier)](identifier)
        raise


def _recording(gateway: "Gateway", identifier: str) -> int:
    """Return the position of the event that recorded what an id stands for."""
    if is_kind(identifier, "op"):
        return gateway.show_trace(identifier).items[0].seq
    found = gateway.show_correction if is_kind(identifier, "cor") else gateway.show
    return found(identifier).position


def _show_raw(session: Session, what: str, seq: int | None, min_position: str | None) -> None:
    text_only(session, "--raw prints the bytes themselves")
    if seq is None:
        with session.gateway(create=False, replay=False, reach=min_position) as gateway:
            stored = gateway.raw(_recording(gateway, full_id(gateway, what)))
    else:
        with session.bare(create=False, reach=min_position) as bare:
            stored = bare.raw(seq)
    print_bytes(stored)


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda log --oneline --limit 20\n  corrigenda log 100..200 --reverse -o jsonl\n"
    "  corrigenda log --type revision.revoked.v1 --since 2026-01-01T00:00:00Z\n"
    "  corrigenda log --graph --oneline --stream pep-241 --project peps\n"
    "  corrigenda log --follow --limit 10 --oneline",
)
@click.argument("positions", metavar="[A..B]", required=False, callback=read_range)
@click.option("--type", "type_", callback=read_event_type, metavar="TAG", help="Only events of this type.")
@click.option("--actor", "by", metavar="WHO", help="Only what this actor did.")
@click.option("--stream", metavar="ID", help="Only this stream; a memory's name means its stream.")
@click.option("--since", callback=read_moment, metavar="TIME", help="Not before this time.")
@click.option("--until", callback=read_moment, metavar="TIME", help="Not after this time.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many; without it, all.")
@click.option("--reverse", is_flag=True, help="Oldest first.")
@click.option("--oneline", is_flag=True, help="One line per event.")
@click.option("--graph", is_flag=True, help="A column for each stream; an open dot ends it.")
@click.option("-f", "--follow", is_flag=True, help="Oldest first, and then each new one; --limit counts older ones.")
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
    graph: bool,
    follow: bool,
    min_position: str | None,
) -> None:
    """List the ledger's events, newest first.

    It answers on a broken chain too. With --follow it ends when it is interrupted.
    """
    first, last = positions
    for flag, name in ((oneline, "--oneline"), (graph, "--graph")):
        if flag and session.machine:
            raise click.UsageError(f"{name} is for people; leave out -o {session.output}.")
    if follow:
        _check_endless(session, last, until)
    with session.bare(create=False, reach=min_position) as bare:
        wanted = {
            "after": first - 1 if first else None,
            "before": None if last is None else last + 1,
            "type": type_,
            "actor": by,
            "stream": None if stream is None else _stream(bare, stream),
            "since": since,
            "until": until,
        }
        shown = _Shown(session, oneline=oneline, graph=graph)
        if follow:
            shown.follow(bare, wanted, limit)
        else:
            shown.list(bare, wanted, limit, reverse=reverse)


def _check_endless(session: Session, last: int | None, until: str | None) -> None:
    if last is not None or until is not None:
        raise click.UsageError("--follow has no end; leave out --until and the end of the range.")
    if session.output in ("json", "yaml"):
        raise click.UsageError(f"-o {session.output} is one document, and --follow has no end; take -o jsonl.")


def _stream(bare: "BareGateway", word: str) -> str:
    """Return the stream that is meant; the beginning of several ids is exit 2."""
    found = bare.streams(word)
    if len(found) > 1:
        raise click.UsageError(f"{word} is the beginning of {len(found)} ids: {', '.join(found)}. Give more of it.")
    return next(iter(found), word)


class _Shown:
    """How `log` shows events: as blocks, lines, a graph, or for a program."""

    def __init__(self, session: Session, *, oneline: bool, graph: bool) -> None:
        self._session = session
        self._graph = graph
        self._text, self._between = (events.event_line, "") if oneline else (events.event, "\n")

    def list(self, bare: "BareGateway", wanted: dict[str, Any], limit: int | None, *, reverse: bool) -> None:
        """Show what there is."""
        if self._graph:
            top, last = bare.last_of_streams(limit=limit, reverse=reverse, **wanted)
            found = bare.log(limit=limit, reverse=reverse, **{**wanted, "before": top + 1})
            shown = self._drawn(found, last)
        else:
            found = bare.log(limit=limit, reverse=reverse, **wanted)
            shown = give_stream(self._session, found, self._text, between=self._between)
        if not shown:
            note(self._session, "no event matches")

    def follow(self, bare: "BareGateway", wanted: dict[str, Any], limit: int | None) -> None:
        """Show what there is, and then what comes, each at once."""

        def waiting(_: "CorrigendaError") -> None:
            note(self._session, "the database does not answer; waiting for it")

        found = _flushing(bare.follow(limit=limit, waiting=waiting, **wanted))
        if self._graph:
            self._drawn(found, None)
        else:
            give_stream(self._session, found, self._text, between=self._between)

    def _drawn(self, found: "Iterable[LogItem]", last: dict[str, int] | None) -> int:
        count = 0
        for lines in columns.draw(found, lambda item: self._text(item).lstrip(), last=last):
            print_text(lines)
            count += 1
        return count


def _flushing(items: "Iterable[LogItem]") -> "Iterator[LogItem]":
    """Yield what comes, once what was printed before it has gone out."""
    for item in items:
        yield item
        flush()
