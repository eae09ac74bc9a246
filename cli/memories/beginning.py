"""How a text enters a memory: remember, correct."""

from typing import Any

import click

from cli.acts import KINDS_NOTE, REV_NOTE, TEXT_NOTE, give_receipt
from cli.context import Session, full_id, pass_session
from cli.options import Verb, read_text, writes


@click.command(
    cls=Verb,
    epilog=f"{TEXT_NOTE}\n\n"
    '\b\nExamples:\n  corrigenda memories remember "user lives in Berlin" --tag profile --project ap\n'
    "  git log -1 --format=%B | corrigenda memories remember - --kind decision --project ap",
)
@click.argument("content", metavar="TEXT", callback=read_text)
@click.option("--kind", default="fact", show_default=True, metavar="K", help=f"What sort it is: {KINDS_NOTE}.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; repeatable.")
@click.option("--confidence", metavar="C", help="0 to 1, at most six places.")
@click.option("--origin", metavar="O", help="Where it comes from: human, agent, llm_extracted or import.")
@click.option("--valid-from", metavar="TIME", help="Since when it is so in the world.")
@click.option("--valid-to", metavar="TIME", help="Until when.")
@click.option("--review-by", metavar="TIME", help="When somebody should look at it again.")
@click.option("--source", "sources", multiple=True, metavar="S", help="A source; repeatable.")
@click.option("--agent", metavar="A", help="The agent whose memory it is.")
@click.option("--user", metavar="U", help="The user whom it is about.")
@click.option("--session", "within", metavar="S", help="The session it comes from.")
@click.option("--task-family", metavar="F", help="The kind of task it serves.")
@click.option("--visibility", metavar="V", help="Who may see it: global, tenant, project, agent, user or session.")
@click.option("--quote", metavar="Q", help="Words of the conversation on which it rests; extracted learnings need it.")
@click.option(
    "--conversation", callback=read_text, metavar="TEXT", help="What was said, to find --quote in. It is not stored."
)
@click.option("--id", "memory_id", metavar="MEM", help="The name to keep it under.")
@writes(names_revision=False)
@pass_session
def remember(
    session: Session,
    content: str,
    tags: tuple[str, ...],
    sources: tuple[str, ...],
    within: str | None,
    dry_run: bool,
    **rest: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """Remember TEXT.

    It becomes a new memory, or with --id the next version of one that has no head. A learning with the origin
    llm_extracted needs --user, and a --quote that stands in the --conversation.
    """
    session.require_project()
    with session.gateway() as gateway:
        receipt = gateway.remember(content, tags=tags, sources=sources, session=within, dry_run=dry_run, **rest)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb,
    epilog=f"{REV_NOTE} {TEXT_NOTE}\n\n"
    '\b\nExample:\n  corrigenda memories correct mem_01J9ZK "user lives in Hamburg" --reason "moved in May"',
)
@click.argument("rev")
@click.argument("content", metavar="TEXT", callback=read_text)
@writes()
@pass_session
def correct(session: Session, rev: str, content: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Replace REV by TEXT.

    REV must be its lineage's head; it becomes superseded, and TEXT the new head.
    """
    with session.gateway() as gateway:
        receipt = gateway.correct(full_id(gateway, rev), content, dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)
