"""`corrigenda verify`: the check of the ledger, or of a bundle that somebody handed out.

Its exit is the report's: a failed check is never exit 0.
"""

from typing import TYPE_CHECKING

import click

from cli.context import Session, pass_session
from cli.options import Range, Verb, read_bytes, read_range, read_text, reads
from cli.output import as_document, give
from cli.progress import metered
from cli.views import audit

if TYPE_CHECKING:
    from gateway.shapes.replies.audit import Verification


@click.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda verify\n  corrigenda verify 0..812 -o json\n"
    "  corrigenda verify --checkpoint yesterday.checkpoint\n  corrigenda verify --since yesterday.checkpoint\n"
    "  corrigenda verify --all\n  corrigenda verify --bundle bundle.tar.gz --key @issuer.vkey",
)
@click.argument("positions", metavar="[A..B]", required=False, callback=read_range)
@click.option(
    "--checkpoint",
    metavar="FILE",
    callback=read_bytes,
    help="A checkpoint that the ledger must bear out; `-` is stdin.",
)
@click.option(
    "--since",
    metavar="FILE",
    callback=read_bytes,
    help="A checkpoint to begin at, if the anchor bears it out; else everything is read.",
)
@click.option("--bundle", metavar="PATH", help="A bundle to check instead of the ledger; it needs no database.")
@click.option("--key", metavar="VKEY", callback=read_text, help="With --bundle: the issuer's key, or @FILE.")
@click.option("--origin", metavar="O", help="With --bundle: the log that it must be of.")
@click.option("--projections", is_flag=True, help="Compare the read models, too, with what the events make of them.")
@click.option("--index", is_flag=True, help="Compare the index, too, with what the ledger says, and search in it.")
@click.option("--all", "everything", is_flag=True, help="As --projections and --index.")
@reads
@pass_session
@click.pass_context
def verify(
    context: click.Context,
    session: Session,
    positions: Range,
    checkpoint: bytes | None,
    since: bytes | None,
    bundle: str | None,
    key: str | None,
    origin: str | None,
    projections: bool,
    index: bool,
    everything: bool,
    min_position: str | None,
) -> None:
    """Check every byte of the ledger that can be checked.

    Form, chain, streams, seals, payloads and the anchor's leaves, of everything or of a range; of everything the root
    of the tree and the checkpoints too. With `--since`, what a checkpoint covers is not read again, and the report says
    so: a nightly run costs the day's events. What was altered below it since is found by a whole pass only, or by
    whoever reads it. With `--projections` the read models are compared, too: exit 12 names the first row that differs,
    or what supersedes itself. With `--index` the index is held against the ledger, as `index verify` does, if the
    ledger itself is sound: exit 13.

    With `--bundle` the ledger is left alone, and a bundle that `corrigenda export` made is checked with a key that came
    by another way: exit 14 if it is not what was written, 15 if that key cannot tell.

    Exit 0 if all is well, 10 to 15 if not: the lowest that applies. It makes nothing and changes nothing.
    """
    if bundle is not None or key is not None or origin is not None:
        if positions != (None, None) or checkpoint or since or projections or index or everything or min_position:
            raise click.UsageError("--bundle is checked by itself: leave out what is about the ledger.")
        context.exit(_verify_bundle(session, bundle, key, origin))
    first, last = positions
    with session.bare(create=False, reach=min_position) as bare, metered(session, ("verified", "events")) as meter:
        report = bare.verify(
            first=first,
            last=last,
            progress=meter.show,
            checkpoint=checkpoint,
            since=since,
            projections=projections or everything,
        )
    if index or everything:
        report = _with_index(session, report)
    found = as_document(report)
    give(session, report, lambda: audit.verification(found, paint=session.paint))
    context.exit(found["exit_code"])


def _with_index(session: Session, report: "Verification") -> "Verification":
    """Return the report with the index's own check; of a ledger that is not sound it is not asked."""
    from gateway.upkeep.index_check import judged
    from ledger.errors import CorrigendaError

    if not report.ok:
        return judged(report, "the ledger says what an index should hold, and is not sound itself")
    try:
        with session.gateway(create=False, replay=False) as gateway, metered(session, ("compared", "items")) as meter:
            return judged(report, gateway.verify_index(progress=meter.show))
    except CorrigendaError as error:
        if error.code != "NOT_CONFIGURED":
            raise
        return judged(report, "there is no embedder, so no index")


def _verify_bundle(session: Session, path: str | None, key: str | None, origin: str | None) -> int:
    if path is None or key is None:
        raise click.UsageError("A bundle is checked with --bundle PATH and --key VKEY (or @FILE), both.")
    from gateway.audit.bundles import verify_bundle

    with metered(session, ("verified", "parts")) as meter:
        found = verify_bundle(path, key, origin=origin, progress=meter.show)
    give(session, found, lambda: audit.bundle(found, paint=session.paint))
    return found.exit_code
