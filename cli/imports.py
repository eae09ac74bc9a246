"""`corrigenda import`: foreign files into the ledger. Exit 9 if a row was refused, whatever else was stored."""

import click

from cli import views
from cli.context import Session, pass_session
from cli.exits import PARTIAL
from cli.options import Verb
from cli.output import give
from cli.progress import metered


@click.command(
    "import",
    cls=Verb,
    epilog="\b\nExample:\n  corrigenda import pep-history.jsonl.gz --format peps --project peps --on-error skip",
)
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option("--format", "form", type=click.Choice(("peps",)), required=True, help="What the file is.")
@click.option(
    "--on-error", type=click.Choice(("stop", "skip")), default="stop", show_default=True, help="After a bad row."
)
@pass_session
@click.pass_context
def import_(context: click.Context, session: Session, path: str, form: str, on_error: str) -> None:
    """Import a foreign file; importing it twice stores nothing twice.

    The time of a row becomes the time since when it holds in the world.
    """
    session.require_project()
    with session.gateway() as gateway, metered(session, ("imported", "rows"), ("indexed", "items")) as meter:
        report = gateway.import_peps(path, on_error=on_error, progress=meter.show)
    give(session, report, lambda: views.imported(report))
    if report.rejected:
        context.exit(PARTIAL)
