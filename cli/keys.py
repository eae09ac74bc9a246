"""`corrigenda keys`: which keys a ledger has, and the public one. No private key is ever printed."""

from typing import Any

import click

from cli.context import Session, pass_session
from cli.options import Noun, Verb
from cli.output import as_document, give
from cli.text import inert, table


@click.group("keys", cls=Noun)
def keys() -> None:
    """List the ledger's keys, and print the public one."""


@keys.command("list", cls=Verb, epilog="\b\nExample:\n  corrigenda keys list")
@pass_session
def list_(session: Session) -> None:
    """List the ledger's keys, and whether the files that hold them are here."""
    with session.bare(create=False) as bare:
        found = as_document(bare.list_keys())
    give(session, found, lambda: _table(found["items"]), items="items")


@keys.command("export-public", cls=Verb, epilog="\b\nExample:\n  corrigenda keys export-public > ledger.vkey")
@pass_session
def export_public(session: Session) -> None:
    """Print the verifier key of this ledger's checkpoints, as event 0 has it. Hand it on by a way of its own."""
    with session.bare(create=False) as bare:
        found = as_document(bare.public_key())
    give(session, found, lambda: inert(str(found["public_key"])))


def _table(items: list[dict[str, Any]]) -> str:  # Any: JSON
    rows = [(item["purpose"], item["key_id"], item["held"], inert(item["file"])) for item in items]
    return table([("for", "key id", "held", "file"), *rows])
