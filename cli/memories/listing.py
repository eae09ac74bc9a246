"""Looking at memories: the list of them, and one."""

from typing import TYPE_CHECKING, Any

import click

from cli.acts import CURSOR_NOTE, KINDS_NOTE, REV_NOTE
from cli.context import Session, full_id, pass_session
from cli.options import Verb, reads
from cli.output import give, give_stream, note, note_next
from cli.views import memories

if TYPE_CHECKING:
    from gateway.shapes.replies.memories import Revision

_STATES = ("active", "processing", "conflicted", "superseded", "rejected", "retired", "forgotten", "erased", "revoked")


@click.command(
    "list",
    cls=Verb,
    epilog=f"{CURSOR_NOTE}\n\n"
    "\b\nExamples:\n  corrigenda memories list --project ap\n"
    "  corrigenda memories list --state conflicted --state processing --project ap -o name\n"
    "  corrigenda memories list --tag profile --fields memory_id,content -o csv --project ap\n"
    "  corrigenda memories list --memory pep-241 --state superseded -o json --project peps",
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES),
    help="In this state; repeatable. Else active, processing.",
)
@click.option("--memory", metavar="MEM", help="Only this memory's revisions, with what happened to each.")
@click.option("--kind", metavar="K", help=f"Only this kind: {KINDS_NOTE}.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only with this tag; repeatable.")
@click.option("--agent", metavar="A", help="As this agent sees it.")
@click.option("--user", metavar="U", help="As this user sees it.")
@click.option("--session", "conversation", metavar="S", help="As this session sees it.")
@click.option("--limit", type=int, metavar="N", help="A page of at most so many, 1 to 1000.")
@click.option("--cursor", metavar="C", help="Where the page before ended.")
@reads
@pass_session
def list_(
    session: Session,
    states: tuple[str, ...],
    memory: str | None,
    conversation: str | None,
    limit: int | None,
    min_position: str | None,
    **rest: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """List the project's memories, oldest first.

    Those that are active or held, unless --state says otherwise.
    """
    session.require_project()
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        wanted: dict[str, Any] = {  # Any: as above
            "states": states or None,
            "memory": memory and full_id(gateway, memory),
            "session": conversation,
            **rest,
        }
        if limit is None:
            count = give_stream(session, gateway.iterate_memories(**wanted), lambda item: _line(session, item))
            cursor = None
        else:
            page = gateway.list_memories(limit=limit, **wanted)
            give(session, page, lambda: "\n".join(_line(session, item) for item in page.items), items="items")
            count, cursor = len(page.items), page.next_cursor
    if not count:
        note(session, "no memory matches; --state lists those that were superseded or withdrawn")
    note_next(session, cursor)


@click.command(cls=Verb, epilog=f"{REV_NOTE}\n\n\b\nExample:\n  corrigenda memories show pep-241 --project peps")
@click.argument("rev")
@reads
@pass_session
def show(session: Session, rev: str, min_position: str | None) -> None:
    """Show REV."""
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.show(full_id(gateway, rev))
    give(session, found, lambda: memories.revision(found, paint=session.paint))


def _line(session: Session, item: "Revision") -> str:
    return memories.listed(item, wide=session.output == "wide", paint=session.paint)
