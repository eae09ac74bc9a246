"""`corrigenda index`: the verified index, which can always be made anew from the ledger and the stored vectors."""

from typing import TYPE_CHECKING

import click

from cli.context import Session, pass_session
from cli.index_checks import rebuild, verify
from cli.options import Noun, Verb, reads
from cli.output import give
from cli.progress import metered
from cli.text import count, inert, table

if TYPE_CHECKING:
    from gateway.shapes.replies.models import IndexStatus, Reembedding


@click.group("index", cls=Noun)
def index() -> None:
    """Check the index, make it or embed it anew, and say how far it is."""


index.add_command(verify)
index.add_command(rebuild)


@index.command(
    cls=Verb,
    epilog="\b\nExample:\n  CORRIGENDA_EMBEDDER=openai:text-embedding-3-small corrigenda index reembed",
)
@pass_session
def reembed(session: Session) -> None:
    """Build the index with the embedder that is configured now, and swap.

    It is built beside the live one, while everybody reads and writes on. What is embedded is stored, so that a run
    that was interrupted goes on, and going back to the former embedder embeds next to nothing. Processes that still
    use the former embedder have to be started again with this one.
    """
    with session.gateway(create=False, replay=False) as gateway, metered(session, ("carried", "effects")) as meter:
        done = gateway.reembed(progress=meter.show)
    give(session, done, lambda: _reembedded(done))


@index.command(cls=Verb, epilog="\b\nExample:\n  corrigenda index status -o json")
@reads
@pass_session
def status(session: Session, min_position: str | None) -> None:
    """Show what the newest durable index holds, who embedded it, and how far it is behind."""
    with session.bare(create=False, reach=min_position) as bare:
        found = bare.index_status()
    give(session, found, lambda: _status(found))


def _reembedded(done: "Reembedding") -> str:
    before = "there was no index" if done.signature_before is None else f"before: {inert(done.signature_before)}"
    return "\n".join(
        [
            f"{count(done.items, 'item')} in the index up to position {done.position}, "
            f"{count(done.embedded, 'text')} embedded for it",
            f"by: {inert(done.signature)}",
            before,
            *([f"left out: {count(done.parked, 'text')} that it fails on, see `outbox list`"] if done.parked else []),
        ]
    )


def _status(found: "IndexStatus") -> str:
    facts = [
        ("engine", inert(found.engine)),
        ("embedder", inert(found.embedder)),
        ("built by", "nobody yet" if found.signature is None else inert(found.signature)),
        ("cursor", f"{found.cursor}, {count(found.lag, 'effect')} behind" if found.lag else f"{found.cursor}"),
        ("items", f"{found.items:,}"),
    ]
    parts = [(f"{one.tier} {' '.join(one.namespace)}", f"{one.items:,}") for one in found.partitions]
    return "\n".join([table(facts), *([table([(inert(name), items) for name, items in parts])] if parts else [])])
