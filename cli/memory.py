"""`corrigenda memories`: the acts on memories, each one call of the gateway.

A verb translates words into that call and its answer into words; it decides nothing.
"""

from typing import TYPE_CHECKING, Any

import click

from cli import views
from cli.context import Session, full_id, pass_session
from cli.options import Noun, Verb, read_text, reads, writes
from cli.output import give, note

if TYPE_CHECKING:
    from gateway.replies import Receipt

_REV = "REV is a revision id, or a memory id or name, which means its head."
_TEXT = "TEXT may be - (stdin) or @FILE; write @@ for a text that begins with @."
_KINDS = "fact, preference, learning, decision, procedure, task or other"


@click.group("memories", cls=Noun)
def memories() -> None:
    """Remember, correct, withdraw, restore, link and search memories."""


def _receipt(session: Session, receipt: "Receipt", *, dry_run: bool) -> None:
    give(session, receipt, lambda: views.receipt(receipt, dry_run=dry_run))
    for warning in receipt.warnings:
        note(session, f"warning: {warning}")


@memories.command(
    cls=Verb,
    epilog=f"{_TEXT}\n\n"
    '\b\nExamples:\n  corrigenda memories remember "user lives in Berlin" --tag profile --project ap\n'
    "  git log -1 --format=%B | corrigenda memories remember - --kind decision --project ap",
)
@click.argument("content", metavar="TEXT", callback=read_text)
@click.option("--kind", default="fact", show_default=True, metavar="K", help=f"What sort of memory it is: {_KINDS}.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; repeatable.")
@click.option("--confidence", metavar="C", help="0 to 1, at most six places.")
@click.option("--origin", metavar="O", help="Where it comes from: human, agent, llm_extracted or import.")
@click.option("--valid-from", metavar="TIME", help="Since when it is so in the world.")
@click.option("--valid-to", metavar="TIME", help="Until when.")
@click.option("--review-by", metavar="TIME", help="When somebody should look at it again.")
@click.option("--source", "sources", multiple=True, metavar="S", help="A source; repeatable.")
@click.option("--agent", metavar="A", help="The agent whose memory it is.")
@click.option("--user", metavar="U", help="The user whom it is about.")
@click.option("--session", "conversation", metavar="S", help="The session it comes from.")
@click.option("--task-family", metavar="F", help="The kind of task it serves.")
@click.option("--visibility", metavar="V", help="Who may see it: global, tenant, project, agent, user or session.")
@click.option("--id", "memory_id", metavar="MEM", help="The name to keep it under.")
@writes(names_revision=False)
@pass_session
def remember(
    session: Session,
    content: str,
    tags: tuple[str, ...],
    sources: tuple[str, ...],
    conversation: str | None,
    dry_run: bool,
    **rest: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """Remember TEXT.

    It becomes a new memory, or with --id the next version of one that has no head.
    """
    session.require_project()
    with session.gateway() as gateway:
        receipt = gateway.remember(content, tags=tags, sources=sources, session=conversation, dry_run=dry_run, **rest)
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(
    cls=Verb,
    epilog=f"{_REV} {_TEXT}\n\n"
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
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(cls=Verb, epilog=f'{_REV}\n\n\b\nExample:\n  corrigenda memories retire pep-241 --reason "outdated"')
@click.argument("rev")
@writes()
@pass_session
def retire(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Withdraw REV as knowledge that no longer holds."""
    with session.gateway() as gateway:
        receipt = gateway.retire(full_id(gateway, rev), dry_run=dry_run, **how)
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(cls=Verb, epilog=f'{_REV}\n\n\b\nExample:\n  corrigenda memories revoke rev_01J9ZK --reason "poison"')
@click.argument("rev")
@writes(reason_required=True)
@pass_session
def revoke(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Revoke REV, with a reason.

    It is not served again, whatever an index still holds, unless it is restored.
    """
    with session.gateway() as gateway:
        receipt = gateway.revoke(full_id(gateway, rev), dry_run=dry_run, **how)
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(cls=Verb, epilog="\b\nExample:\n  corrigenda memories restore pep-241 --reason 'revoked by mistake'")
@click.argument("rev")
@writes()
@pass_session
def restore(session: Session, rev: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Undo the withdrawal of REV.

    A memory means its revision that was withdrawn last.
    """
    with session.gateway() as gateway:
        receipt = gateway.restore(full_id(gateway, rev), dry_run=dry_run, **how)
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(cls=Verb, epilog="\b\nExample:\n  corrigenda memories link pep-345 pep-314")
@click.argument("new")
@click.argument("old")
@writes(names_revision=False)
@pass_session
def link(session: Session, new: str, old: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """State that memory NEW supersedes memory OLD.

    The states of both stay as they are. A cycle is refused.
    """
    with session.gateway() as gateway:
        receipt = gateway.link(full_id(gateway, new), full_id(gateway, old), dry_run=dry_run, **how)
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(cls=Verb, epilog="\b\nExample:\n  corrigenda memories unlink pep-345 pep-314 --reason 'an error'")
@click.argument("new")
@click.argument("old")
@writes(reason_required=True, names_revision=False)
@pass_session
def unlink(session: Session, new: str, old: str, dry_run: bool, **how: Any) -> None:  # Any: as in `remember`
    """Withdraw, with a reason, that NEW supersedes OLD."""
    with session.gateway() as gateway:
        receipt = gateway.unlink(full_id(gateway, new), full_id(gateway, old), dry_run=dry_run, **how)
    _receipt(session, receipt, dry_run=dry_run)


@memories.command(
    cls=Verb,
    epilog=f"{_TEXT.replace('TEXT', 'QUERY')}\n\n"
    '\b\nExamples:\n  corrigenda memories search "where does the user live?" --project ap\n'
    '  corrigenda memories search "metadata version" -k 3 --kind fact -o jsonl',
)
@click.argument("query", callback=read_text)
@click.option("-k", "k", type=int, default=5, show_default=True, metavar="N", help="At most so many hits.")
@click.option("--min-trust", type=click.Choice(("unverified", "verified")), default="unverified", show_default=True)
@click.option("--kind", "kinds", multiple=True, metavar="K", help=f"Only this kind: {_KINDS}; repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only with this tag; repeatable.")
@click.option("--agent", metavar="A", help="As this agent sees it.")
@click.option("--user", metavar="U", help="As this user sees it.")
@click.option("--session", "conversation", metavar="S", help="As this session sees it.")
@reads
@pass_session
def search(
    session: Session,
    query: str,
    conversation: str | None,
    min_position: str | None,
    **rest: Any,  # Any: as in `remember`
) -> None:
    """Find memories near QUERY.

    Every hit is confirmed by the ledger, and says whether it is verified or unverified.
    """
    session.require_project()
    with session.gateway(create=False) as gateway:
        found = gateway.search(query, session=conversation, min_position=min_position, **rest)
    give(session, found, lambda: views.hits(found, paint=session.paint), items="hits")
    for warning in found.warnings:
        note(session, f"warning: {warning}")
    if found.empty_reason:
        note(session, views.empty(found.empty_reason, found.warnings))
