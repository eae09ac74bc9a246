"""`corrigenda keys`: which keys a ledger has, and the public one. No private key is ever printed or overwritten."""

from typing import Any

import click

from cli.context import Session, pass_session
from cli.options import Noun, Verb
from cli.output import as_document, give
from cli.text import inert, table


@click.group("keys", cls=Noun)
def keys() -> None:
    """Make and list the ledger's keys, and print the public one."""


@keys.command("list", cls=Verb, epilog="\b\nExample:\n  corrigenda keys list")
@pass_session
def list_(session: Session) -> None:
    """List the ledger's keys, and whether the files that hold them are here."""
    with session.bare(create=False) as bare:
        found = as_document(bare.list_keys())
    give(session, found, lambda: _table(found["items"]), items="items")


@keys.command(cls=Verb, epilog="\b\nExample:\n  corrigenda keys generate")
@pass_session
def generate(session: Session) -> None:
    """Make the key files for a ledger that is still to be made; those that are there stay as they are.

    The first write makes them too: this is for who wants to put them in a safe place, or a backup, before. Each is
    readable by its owner only. Without them a ledger can be neither checked nor written.
    """
    with session.bare(create=False) as bare:
        made = as_document(bare.generate_keys())
    give(session, made, lambda: _made(made["items"]), items="items")


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


def _made(items: list[dict[str, Any]]) -> str:  # Any: JSON
    rows = [(item["purpose"], "made" if item["made"] else "was there", inert(item["file"])) for item in items]
    return table([("for", "", "file"), *rows])
