"""`corrigenda export`: what is handed to an auditor, who checks it without us, or taken along to another ledger."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cli.context import Session, full_id, pass_session
from cli.options import Noun, Verb, read_at
from cli.output import give, note
from cli.progress import metered
from cli.views import audit

CommandT = TypeVar("CommandT", bound=Callable[..., Any])  # Any: what click makes of the options


@click.group("export", cls=Noun)
def export() -> None:
    """Hand histories to an outsider with the proofs, or write them as lines."""


@export.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda export supersession pep-241 --out bundle --recipient auditor@example.org\n"
    "  corrigenda export supersession pep-241 pep-314 --out bundle.tar.gz --with-payloads none",
)
@click.argument("ids", metavar="MEM…", nargs=-1, required=True)
@click.option("--out", required=True, metavar="PATH", help="A directory, or a file: NAME.tar, NAME.tar.gz.")
@click.option("--complete", is_flag=True, help="With every entry of the log: then nothing can be missing.")
@click.option("--as-of", callback=read_at, metavar="SEQ|TIME", help="Only what was there then.")
@click.option(
    "--with-payloads", default="all", show_default=True, metavar="all|none|REV,…", help="Which texts may be seen."
)
@click.option("--recipient", metavar="WHO", help="For whom it is; recorded with the export.")
@click.option("--idempotency-key", metavar="KEY", help="Makes it safe to send the same again.")
@pass_session
def supersession(
    session: Session,
    ids: tuple[str, ...],
    out: str,
    complete: bool,
    as_of: str | None,
    with_payloads: str,
    recipient: str | None,
    idempotency_key: str | None,
) -> None:
    """Write the whole history of MEM into a bundle, and of what it superseded.

    The export itself is an event. Whoever gets the bundle checks it with `corrigenda verify --bundle`, or with programs
    that others wrote (VERIFY.md inside), and with the key that `corrigenda keys export-public` prints.
    """
    revealed = with_payloads if with_payloads in ("all", "none") else with_payloads.split(",")
    with session.gateway(create=False) as gateway, metered(session, *_phases(complete=complete)) as meter:
        named = [full_id(gateway, one) for one in ids]
        if not isinstance(revealed, str):
            revealed = [full_id(gateway, one) for one in revealed]
        made = gateway.export_supersession(
            named, out, complete=complete, as_of=as_of, with_payloads=revealed, recipient=recipient,
            idempotency_key=idempotency_key, progress=meter.show,
        )  # fmt: skip
    give(session, made, lambda: audit.export(made))
    for warning in made.warnings:
        note(session, f"warning: {warning}")


def _phases(*, complete: bool) -> list[tuple[str, str]]:
    """Return what a bundle takes, one after the other."""
    log = [("written", "entries")] if complete else []
    return [("exported", "events"), *log, ("proven", "events")]


def _written(command: CommandT) -> CommandT:
    """Give a command the options of an export that is written whole."""
    options = (
        click.option("--out", required=True, metavar="PATH", help="Where it is to lie; nothing may be there yet."),
        click.option(
            "--format", "form", type=click.Choice(("bundle", "jsonl", "csv")), default="bundle", show_default=True,
            help="A bundle with proofs, lines of JSON that `import` reads, or a table.",
        ),
        click.option("--complete", is_flag=True, help="A bundle with every entry of the log, of any length."),
        click.option("--as-of", callback=read_at, metavar="SEQ|TIME", help="Only what was there then."),
        click.option("--recipient", metavar="WHO", help="For whom it is; recorded with the export."),
        click.option("--idempotency-key", metavar="KEY", help="Makes it safe to send the same again."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@export.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda export ledger --format jsonl --out ledger.jsonl.gz\n"
    "  corrigenda export ledger --format csv --as-of 2026-09-30T23:59:59Z --out third-quarter.csv",
)
@_written
@click.option(
    "--with-payloads", default="all", show_default=True, metavar="all|none|REV,…", help="Which texts may be seen."
)
@click.option("--without-forgotten", is_flag=True, help="In lines, too, leave out the texts of what was forgotten.")
@pass_session
def ledger(session: Session, **options: Any) -> None:  # Any: as the options above have it
    """Write every event of the ledger: a bundle, lines of JSON, or a table.

    Lines are a copy that `corrigenda import` takes into another ledger, so the texts of what was forgotten are in it
    (forgetting is not erasing); in bundles and tables they never are. A name that ends in .gz is packed.
    """
    _export(session, "export_ledger", options)


@export.command(
    cls=Verb,
    epilog="\b\nExample:\n  corrigenda export corrections --project billing --format csv --out corrections.csv",
)
@_written
@click.option(
    "--with-payloads", type=click.Choice(("all", "none")), default="all", show_default=True, help="Whether with texts."
)
@pass_session
def corrections(session: Session, **options: Any) -> None:  # Any: as the options above have it
    """Write the project's corrections, event by event: a bundle, lines of JSON, or a table."""
    _export(session, "export_corrections", options)


def _export(session: Session, act: str, options: dict[str, Any]) -> None:  # Any: as the options have it
    revealed = options.pop("with_payloads")
    phases = [("exported", "events")]
    if options["form"] == "bundle":  # of a whole log it is found first what is to be told
        phases = [("read", "entries"), *phases] if options["complete"] else _phases(complete=False)
    with session.gateway(create=False) as gateway, metered(session, *phases) as meter:
        if revealed not in ("all", "none"):
            revealed = [full_id(gateway, one) for one in revealed.split(",")]
        made = getattr(gateway, act)(options.pop("out"), with_payloads=revealed, progress=meter.show, **options)
    give(session, made, lambda: audit.export(made))
    for warning in made.warnings:
        note(session, f"warning: {warning}")
