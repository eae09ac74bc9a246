"""How what is said about a memory is mended while its text stays."""

from typing import Any

import click

from cli.acts import REV_NOTE, give_receipt
from cli.context import Session, full_id, pass_session
from cli.options import Verb, writes


@click.command(
    cls=Verb,
    epilog=f"{REV_NOTE} What is not named stays as it is. For another text, see `corrigenda memories correct`.\n\n"
    "\b\nExamples:\n  corrigenda memories patch home --tag profile --tag address\n"
    "  corrigenda memories patch home --no-tags --confidence 0.9",
)
@click.argument("rev")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag, in place of those it has; repeatable.")
@click.option("--no-tags", is_flag=True, help="Take its tags away.")
@click.option("--confidence", metavar="C", help="0 to 1, at most six places.")
@click.option("--valid-from", metavar="TIME", help="Since when it is so in the world.")
@click.option("--valid-to", metavar="TIME", help="Until when.")
@click.option("--review-by", metavar="TIME", help="When somebody should look at it again.")
@click.option("--source", "sources", multiple=True, metavar="S", help="A source, in place of those it has; repeatable.")
@writes()
@pass_session
def patch(
    session: Session,
    rev: str,
    tags: tuple[str, ...],
    no_tags: bool,
    sources: tuple[str, ...],
    confidence: str | None,
    valid_from: str | None,
    valid_to: str | None,
    review_by: str | None,
    dry_run: bool,
    **how: Any,  # Any: as in `remember`
) -> None:
    """Mend the metadata of REV that was always wrong.

    Its text, its id and its place stay. Equal metadata changes nothing: `unchanged`.
    """
    if tags and no_tags:
        raise click.UsageError("--tag and --no-tags exclude each other. Give one of them.")
    texts = {"confidence": confidence, "valid_from": valid_from, "valid_to": valid_to, "review_by": review_by}
    fields: dict[str, Any] = {name: value for name, value in texts.items() if value is not None}  # Any: text or list
    if tags or no_tags:
        fields["tags"] = tags
    if sources:
        fields["sources"] = sources
    if not fields:
        raise click.UsageError(
            "Nothing was named to mend. Give --tag, --no-tags, --confidence or another of its options."
        )
    with session.gateway() as gateway:
        receipt = gateway.patch(full_id(gateway, rev), dry_run=dry_run, **how, **fields)
    give_receipt(session, receipt, dry_run=dry_run)
