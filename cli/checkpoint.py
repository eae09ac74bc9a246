"""`corrigenda checkpoint`: what the ledger is at a size, signed, so that whoever keeps it can tell later.

Only `sign` writes: `--out` a checkpoint in the place of an older one of the same ledger, `--tiles` a whole directory.
"""

import sys

import click

from cli.context import Session, pass_session
from cli.files import read_earlier, replace
from cli.options import Noun, Verb, read_bytes
from cli.output import as_document, give, note
from cli.progress import metered
from cli.views import audit


@click.group("checkpoint", cls=Noun)
def checkpoint() -> None:
    """Sign what the ledger is now, and compare what was signed."""


@checkpoint.command(
    cls=Verb, epilog="\b\nExample:\n  corrigenda checkpoint sign --out /mnt/elsewhere/ledger.checkpoint"
)
@click.option("--out", metavar="FILE", help="Put it there; one that is there already must be extended by it.")
@click.option("--tiles", metavar="DIR", help="Show the log there, as tiles: a directory that programs of others read.")
@pass_session
def sign(session: Session, out: str | None, tiles: str | None) -> None:
    """Verify the whole ledger, and print a signed note of its size and root.

    Keep it where whoever can write the database cannot: `verify --checkpoint` then finds a ledger that was shortened or
    rewritten. Nothing is signed over a ledger that is not whole.

    With --tiles the directory holds the checkpoint, the envelopes and the tree over them (C2SP tlog-tiles), and no
    payloads. It can be served as it is; the next run adds to it.
    """
    earlier = None if out is None else read_earlier(out)
    with session.bare(create=False) as bare, metered(session, ("verified", "events")) as meter:
        signed = as_document(bare.sign_checkpoint(earlier=earlier, tiles=tiles, progress=meter.show))
    raw = str(signed["note"]).encode()
    if tiles is not None:
        shown = signed["tiles"]
        note(session, f"{shown['directory']}: {shown['written']} files written, {shown['kept']} kept")
    if out is not None:
        replace(out, raw)
        note(session, f"written to {out}")
    if session.machine:
        give(session, signed, lambda: "")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)  # bytes: it is a signature's text, and no terminal's encoding may touch it


@checkpoint.command(cls=Verb, epilog="\b\nExample:\n  corrigenda checkpoint show ledger.checkpoint")
@click.argument("file", metavar="FILE", callback=read_bytes)
@pass_session
def show(session: Session, file: bytes) -> None:
    """Check that this ledger's key signed a checkpoint, and print what it says; `-` is stdin.

    Whether the ledger still bears it out is for `verify --checkpoint` to say. Exit 11 if it is none of this ledger's, 2
    if it is no checkpoint at all.
    """
    with session.bare(create=False) as bare:
        said = as_document(bare.show_checkpoint(file))
    give(session, said, lambda: audit.checkpoint(said))


@checkpoint.command(
    cls=Verb, epilog="\b\nExample:\n  corrigenda checkpoint consistency monday.checkpoint friday.checkpoint"
)
@click.argument("old", metavar="A", callback=read_bytes)
@click.argument("new", metavar="B", callback=read_bytes)
@pass_session
def consistency(session: Session, old: bytes, new: bytes) -> None:
    """Prove from the ledger that checkpoint B extends checkpoint A: exit 0 with the proof, else 11."""
    with session.bare(create=False) as bare:
        proven = as_document(bare.compare_checkpoints(old, new))
    sizes = f"{proven['old']['size']:,} entries are the beginning of {proven['new']['size']:,}"
    give(session, proven, lambda: "\n".join([f"ok: {sizes}; the proof:", *proven["proof"]]))
