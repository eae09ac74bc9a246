"""`corrigenda evidence`: bytes that a claim rests on, found by their hash."""

import sys
from typing import TYPE_CHECKING, Any

import click

from cli.context import Session, pass_session
from cli.options import Noun, Verb, reads
from cli.output import give, print_bytes, text_only
from cli.text import inert, moment, pairs

if TYPE_CHECKING:
    from gateway.shapes.replies.memories import Evidence


@click.group("evidence", cls=Noun)
def evidence() -> None:
    """Keep and show evidence by its hash."""


@evidence.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda evidence add report.pdf --media-type application/pdf --project ap\n"
    "  corrigenda evidence add - --project ap < transcript.txt\n"
    "  corrigenda evidence add --hash b3:$(b3sum --no-names big) --uri s3://bucket/big --project ap",
)
@click.argument("path", required=False, metavar="[PATH|-]")
@click.option("--media-type", metavar="M", help="What it is, such as text/plain.")
@click.option("--hash", "hash_", metavar="H", help="Of what lies elsewhere: b3: and its BLAKE3 in hex.")
@click.option("--uri", metavar="URI", help="Where that lies.")
@click.option("--idempotency-key", metavar="KEY", help="Makes it safe to send the same again.")
@click.option("--dry-run", is_flag=True, help="Check everything, write nothing.")
@pass_session
def add(
    session: Session,
    path: str | None,
    hash_: str | None,
    uri: str | None,
    **how: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """Keep the bytes of a file or of stdin, at most 16 MiB, or mention what lies elsewhere.

    The same bytes are kept once in a project. Their hash is what a memory names them by. No reason is kept with them:
    that is for the act that names them.
    """
    session.require_project()
    if (path is None) != (hash_ is not None and uri is not None) or (path is not None and (hash_ or uri)):
        raise click.UsageError("Give a PATH (- is stdin), or else --hash and --uri.")
    source = _stdin(session) if path == "-" else path
    with session.gateway(replay=False) as gateway:
        done = gateway.add_evidence(source, hash=hash_, uri=uri, **how)
    give(session, done, lambda: _text(done))


@evidence.command(
    cls=Verb, epilog="\b\nExample:\n  corrigenda evidence show b3:77c552… --raw --project ap > report.pdf"
)
@click.argument("hash_", metavar="HASH")
@click.option("--raw", is_flag=True, help="Its bytes, held against the hash.")
@reads
@pass_session
def show(session: Session, hash_: str, raw: bool, min_position: str | None) -> None:
    """Show what is known of evidence, or its bytes."""
    session.require_project()
    if raw:
        text_only(session, "--raw gives bytes as they are")
    with session.gateway(create=False, replay=False, reach=min_position) as gateway:
        if raw:
            print_bytes(gateway.read_evidence(hash_))
            return
        found = gateway.show_evidence(hash_)
    give(session, found, lambda: _text(found))


def _stdin(session: Session) -> bytes:
    """Return what stdin holds, up to one byte more than is kept: that is refused in the gateway's words."""
    from ledger.limits import EVIDENCE_BYTES_MAX

    if session.no_input and sys.stdin.buffer.isatty():
        raise click.UsageError("`-` would wait for a person to type, and --no-input forbids it.")
    return sys.stdin.buffer.read(EVIDENCE_BYTES_MAX + 1)


def _text(found: "Evidence") -> str:
    rows = [
        ("name", found.name and inert(found.name)),
        ("media type", found.media_type),
        ("bytes", "(erased)" if found.erased else f"{found.size:,}" if found.stored else "not kept here"),
        ("uri", found.uri and inert(found.uri)),
        ("added", f"{moment(found.added_at)} at {found.added}" if found.added_at else "no: this was a dry run"),
    ]
    return f"{found.hash}\n{pairs(rows)}"
