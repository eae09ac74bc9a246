"""`corrigenda policy`: how a project, or the whole tenant, wants things done."""

from typing import TYPE_CHECKING

import click

from cli.acts import give_receipt
from cli.context import Session, pass_session
from cli.options import Noun, Verb, reads, writes
from cli.output import give
from cli.text import inert, table

if TYPE_CHECKING:
    from gateway.shapes.replies.memories import Policy


UNREAD = ("mode", "self_approval", "log.public", "mcp.argument_errors")


@click.group("policy", cls=Noun)
def policy() -> None:
    """Show and set how a project wants things done."""


@policy.command(cls=Verb, epilog="\b\nExample:\n  corrigenda policy show --project ap")
@reads
@pass_session
def show(session: Session, min_position: str | None) -> None:
    """Show every setting: the project's, where one is named, and the tenant's."""
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        found = gateway.show_policy()
    give(session, found, lambda: _table(found), items="items")


@policy.command(
    "set",
    cls=Verb,
    epilog="Several settings are one act. A list of names is written with commas; * means all. Nothing reads "
    f"{', '.join(UNREAD[:-1])} and {UNREAD[-1]} yet: they are recorded for versions that do.\n\n"
    "\b\nExamples:\n  corrigenda policy set corrections.top_k=5 corrections.min_score=0.4 --project ap\n"
    '  corrigenda policy set corrections.agents=triage,billing --reason "pilot" --project ap\n'
    "  corrigenda policy set log.public=true",
)
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE…")
@writes(names_revision=False)
@pass_session
def set_(
    session: Session, settings: tuple[str, ...], reason: str | None, idempotency_key: str | None, dry_run: bool
) -> None:
    """Set one or several settings."""
    given = _pairs(settings)
    with session.gateway(replay=False) as gateway:
        receipt = gateway.set_policy(given, reason=reason, idempotency_key=idempotency_key, dry_run=dry_run)
    give_receipt(session, receipt, dry_run=dry_run)


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for words in settings:
        name, equals, value = words.partition("=")
        if not equals or name in given:
            what = "is given twice" if equals else "is not KEY=VALUE"
            raise click.BadParameter(f"{words!r} {what}.", param_hint="KEY=VALUE")
        given[name] = value
    return given


def _table(found: "Policy") -> str:
    rows = [
        (item.name, item.value if isinstance(item.value, str) else ", ".join(item.value), item.of, item.default)
        for item in found.items
    ]
    return table([("setting", "value", "of", ""), *((a, inert(b), c, "default" if d else "") for a, b, c, d in rows)])
