"""`history`, `explain` and `diff`: what was, and how it became what it is. None of them writes."""

import click

from cli.context import Session, full_id, is_kind, pass_session
from cli.options import Verb, is_moment, read_at, reads
from cli.output import give, give_stream, note
from cli.views import corrections, memories, patches


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda history pep-241 --project peps\n  corrigenda history pep-241 --patch",
)
@click.argument("memory", metavar="ID")
@click.option("-p", "--patch", is_flag=True, help="What each revision changed, instead of all that it says.")
@reads
@pass_session
def history(session: Session, memory: str, patch: bool, min_position: str | None) -> None:
    """Show every revision of a memory, in version order.

    Of a correction: those that took each other's place, oldest first.

    With --patch: which fields each one changed, with before and after, the content line by line; and how its metadata
    was mended since.
    """
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        identifier = full_id(gateway, memory)
        if is_kind(identifier, "cor"):
            chain = gateway.correction_history(identifier, patch=patch)
            told = patches.corrections if patch else corrections.chain
            give(session, chain, lambda: told(chain, paint=session.paint), items="items")
            return
        found = gateway.history(identifier, patch=patch)
    draw = patches.history if patch else memories.history
    give(session, found, lambda: draw(found, paint=session.paint), items="items")


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda explain rev_01J9ZK\n  corrigenda explain pep-241 --at 812 --project peps\n"
    "  corrigenda explain pep-241 --at 2026-01-02T03:04:05Z --project peps\n"
    "  corrigenda explain pep-241 --trace trc_01J9ZK --project peps",
)
@click.argument("what", metavar="ID")
@click.option("--at", callback=read_at, metavar="SEQ|TIME", help="As it stood at that position, or at that time.")
@click.option("--trace", metavar="TRACE", help="Why that retrieval chose it, or left it out.")
@reads
@pass_session
def explain(session: Session, what: str, at: str | None, trace: str | None, min_position: str | None) -> None:
    """Tell why a revision or a correction stands as it does, or stood.

    What happened to it, who did it and why, and what stands in its place. A time means what was recorded by then; of
    what was forgotten since, the content is not shown. With --trace a memory means the revision of it that the
    retrieval met.
    """
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        identifier = full_id(gateway, what)
        named = {} if trace is None else {"trace": full_id(gateway, trace)}
        if is_kind(identifier, "cor"):
            told = gateway.explain_correction(identifier, at=at, **named)
            give(session, told, lambda: corrections.correction(told, paint=session.paint))
            return
        story = gateway.explain(identifier, at=at, **named)
    give(session, story, lambda: memories.explanation(story, paint=session.paint))


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda diff rev_01J9ZK rev_01J9ZM\n  corrigenda diff 812 1024 --project peps\n"
    "  corrigenda diff 2026-01-01T00:00:00Z 2026-02-01T00:00:00Z --project peps -o jsonl",
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@reads
@pass_session
@click.pass_context
def diff(context: click.Context, session: Session, before: str, after: str, min_position: str | None) -> None:
    """Show what differs between two revisions, or what changed between two positions.

    A and B are both ids (a memory means its head), or both positions or times of the ledger, the earlier one first:
    then each memory and correction of the project that something happened to. A memory that is named like one of these
    is given by its own mem_… id.
    """
    if is_moment(before) != is_moment(after):
        raise click.UsageError(f"{before} and {after} are no pair: give two ids, or two positions or times.")
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        if is_moment(before):
            first, last = (str(read_at(context, context.command.params[0], word)) for word in (before, after))
            found = gateway.diff_between(first, last)
            shown = give_stream(session, found, lambda item: patches.changed(item, paint=session.paint), between="\n")
        else:
            told = gateway.diff(full_id(gateway, before), full_id(gateway, after))
            give(session, told, lambda: patches.difference(told, paint=session.paint))
            shown = len(told.patch)
    if not shown:
        note(session, "nothing differs")
