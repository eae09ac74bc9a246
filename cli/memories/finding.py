"""Finding memories."""

from typing import Any

import click

from cli.acts import KINDS_NOTE, TEXT_NOTE
from cli.context import Session, pass_session
from cli.options import Verb, read_at, read_moment, read_text, reads
from cli.output import give, note
from cli.views import memories

_CONTEXT_HELP = (
    "A fact of the place, for memories with conditions: directory, worktree, projectId or sessionId; repeatable. "
    "The last two are --project and --session unless given."
)


def _read_context(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for word in value:
        field, equals, said = word.partition("=")
        if not equals or field in facts:
            why = "gives a field twice" if equals else "is not FIELD=VALUE, such as directory=/srv/api"
            raise click.BadParameter(f"{word!r} {why}.", ctx, param)
        facts[field] = said
    return facts


@click.command(
    cls=Verb,
    epilog=f"{TEXT_NOTE.replace('TEXT', 'QUERY')}\n\n"
    '\b\nExamples:\n  corrigenda memories search "where does the user live?" --project ap\n'
    '  corrigenda memories search "metadata version" -k 3 --kind fact -o jsonl\n'
    '  corrigenda memories search "deployment steps" --context directory=/srv/api --why\n'
    '  corrigenda memories search "where does the user live?" --as-of 2026-03-01T00:00:00Z\n'
    '  corrigenda memories search "where does the user live?" --trace-kind dispatch --session s1 --turn 3',
)
@click.argument("query", callback=read_text)
@click.option("-k", "k", type=int, default=5, show_default=True, metavar="N", help="At most so many hits.")
@click.option(
    "--min-trust",
    type=click.Choice(("unverified", "verified")),
    default="unverified",
    show_default=True,
    help="Only what is trusted as far as this.",
)
@click.option("--min-confidence", metavar="C", help="Only what is as sure as this: 0 to 1, at most six places.")
@click.option("--kind", "kinds", multiple=True, metavar="K", help=f"Only this kind: {KINDS_NOTE}; repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only with this tag; repeatable.")
@click.option("--agent", metavar="A", help="As this agent sees it.")
@click.option("--user", metavar="U", help="As this user sees it.")
@click.option("--session", "conversation", metavar="S", help="As this session sees it.")
@click.option("--context", multiple=True, callback=_read_context, metavar="FIELD=VALUE", help=_CONTEXT_HELP)
@click.option("--as-of", callback=read_moment, metavar="T", help="What held at this time in the world.")
@click.option("--at-position", callback=read_at, metavar="SEQ|T", help="As the ledger stood at a position or a time.")
@click.option("--budget", type=int, metavar="TOKENS", help="Only as many hits as fit into so many tokens.")
@click.option("--why", is_flag=True, help="Say also what is near and was left out, by which rule, and the trace.")
@click.option(
    "--trace-kind",
    type=click.Choice(("search", "dispatch")),
    default="search",
    show_default=True,
    help="dispatch: the hits go into a run, and are given only once their trace is stored.",
)
@click.option("--turn", type=int, metavar="N", help="Which turn of the --session this is.")
@click.option("--run", metavar="R", help="Which run this is for.")
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

    Every hit is confirmed by the ledger, and says whether it is verified or unverified. What does not hold now is left
    out, and so is a memory with conditions of its own unless they hold in the --context. Of the past, a hit is as it
    was, with its present state and trust. What was chosen and left out can be told later: `corrigenda traces`.
    """
    session.require_project()
    with session.gateway(create=False) as gateway:
        found = gateway.search(query, session=conversation, min_position=min_position, **rest)
    give(session, found, lambda: memories.search(found, paint=session.paint), items="hits")
    for warning in found.warnings:
        note(session, f"warning: {warning}")
    if found.empty_reason:
        note(session, memories.empty(found.empty_reason, found.warnings, found.at_position))
