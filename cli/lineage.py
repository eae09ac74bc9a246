"""`corrigenda lineage`: what superseded what, drawn, or as a document."""

import click

from cli.context import Session, full_id, pass_session
from cli.options import Verb, reads
from cli.output import give
from cli.views import graph

_FORMATS = ("tree", "graph", "dot", "json")


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda lineage pep-241 --project peps\n"
    "  corrigenda lineage pep-241 --up --format dot | dot -Tsvg > pep-241.svg",
)
@click.argument("memory", metavar="ID")
@click.option("--up", is_flag=True, help="What came after; without --up and --down, both.")
@click.option("--down", is_flag=True, help="What came before.")
@click.option("--depth", type=click.IntRange(min=0), metavar="N", help="At most so many steps away.")
@click.option("--format", "form", type=click.Choice(_FORMATS), help="How to draw it; tree by itself.")
@reads
@pass_session
def lineage(
    session: Session, memory: str, up: bool, down: bool, depth: int | None, form: str | None, min_position: str | None
) -> None:
    """Draw what superseded what.

    Newest first; the links between memories, and the revisions inside them. Of a correction: those that took each
    other's place, and the revisions that they touched.
    """
    if session.machine and form not in (None, "json"):
        raise click.UsageError(f"--format {form} and -o {session.output} are two answers; give one of them.")
    if form == "json" and not session.machine:
        session.output = "json"
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.lineage(full_id(gateway, memory), up=up or None, down=down or None, depth=depth)
    draw = {"graph": graph.lanes, "dot": graph.dot}.get(form or "tree", graph.tree)
    give(session, found, lambda: draw(found))
