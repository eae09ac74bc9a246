"""`corrigenda import`: foreign files, and other ledgers' histories, into the ledger.

Exit 9 if a row was refused, whatever else was stored.
"""

from pathlib import Path

import click

from cli.context import Session, pass_session
from cli.exits import PARTIAL
from cli.options import Verb, read_text
from cli.output import give
from cli.progress import metered
from cli.views import upkeep

_FORMS = {".jsonl": "jsonl", ".jsonl.gz": "jsonl", ".tar": "bundle", ".tar.gz": "bundle", ".tgz": "bundle"}


@click.command(
    "import",
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda import pep-history.jsonl.gz --format peps --project peps --on-error skip\n"
    "  corrigenda import ledger.jsonl.gz --format jsonl\n"
    "  corrigenda import bundle.tar.gz --format bundle --key @issuer.vkey",
)
@click.argument("path", type=click.Path(exists=True))
@click.option(
    "--format", "form", type=click.Choice(("jsonl", "bundle", "peps")), help="What it is, if its name does not say so."
)
@click.option("--key", metavar="VKEY", callback=read_text, help="Of a bundle: its issuer's key, or @FILE.")
@click.option("--origin", metavar="O", help="Of a bundle: the log that it must be of.")
@click.option(
    "--on-error", type=click.Choice(("stop", "skip")), default="stop", show_default=True, help="After a bad row."
)
@pass_session
@click.pass_context
def import_(
    context: click.Context,
    session: Session,
    path: str,
    form: str | None,
    key: str | None,
    origin: str | None,
    on_error: str,
) -> None:
    """Import a file; importing it twice stores nothing twice.

    The lines of another ledger (`corrigenda export ledger --format jsonl`), and bundles, become events of this one,
    each decided anew: their ids and texts stay, what was verified there is unverified here. A bundle is verified first,
    with a key that came by another way. Of a history of PEPs, the time of a row becomes the time since when it holds in
    the world.
    """
    form = form or _form(path)
    if (form == "bundle") != (key is not None) or (origin is not None and key is None):
        raise click.UsageError("A bundle is imported with its issuer's key (--key), and nothing else is.")
    if form != "bundle" and Path(path).is_dir():
        raise click.BadParameter("is a directory, and only a bundle can be one.", param_hint="PATH")
    if form == "peps":
        _import_peps(context, session, path, on_error)
        return
    with session.gateway() as gateway, metered(session, ("imported", "events"), ("indexed", "items")) as meter:
        if key is None:
            report = gateway.import_lines(path, on_error=on_error, progress=meter.show)
        else:
            report = gateway.import_bundle(path, key, origin=origin, on_error=on_error, progress=meter.show)
    give(session, report, lambda: upkeep.taken_over(report))
    if report.rejected:
        context.exit(PARTIAL)


def _import_peps(context: click.Context, session: Session, path: str, on_error: str) -> None:
    session.require_project()
    with session.gateway() as gateway, metered(session, ("imported", "rows"), ("indexed", "items")) as meter:
        report = gateway.import_peps(path, on_error=on_error, progress=meter.show)
    give(session, report, lambda: upkeep.imported(report))
    if report.rejected:
        context.exit(PARTIAL)


def _form(path: str) -> str:
    """Return what a file is by its name: a directory is a bundle. A PEP history is never guessed."""
    if Path(path).is_dir():
        return "bundle"
    found = next((form for ending, form in _FORMS.items() if path.endswith(ending)), None)
    if found is None:
        raise click.UsageError("The name does not say what the file is. Name its --format: jsonl, bundle or peps.")
    return found
