"""`corrigenda export`: what is handed to an auditor, who checks it without us."""

import click

from cli import views
from cli.context import Session, full_id, pass_session
from cli.options import Noun, Verb
from cli.output import give, note


@click.group("export", cls=Noun)
def export() -> None:
    """Hand the history of memories to an outsider, with the proofs."""


@export.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda export supersession pep-241 --out bundle --recipient 'auditor@example.org'\n"
    "  corrigenda export supersession pep-241 pep-314 --out bundle.tar.gz --with-payloads none",
)
@click.argument("ids", metavar="MEM…", nargs=-1, required=True)
@click.option("--out", required=True, metavar="PATH", help="A directory, or a file: NAME.tar, NAME.tar.gz.")
@click.option("--complete", is_flag=True, help="With every entry of the log: then nothing can be missing.")
@click.option("--as-of", metavar="SEQ|TIME", help="Only what was there then.")
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
    with session.gateway(create=False) as gateway:
        named = [full_id(gateway, one) for one in ids]
        if not isinstance(revealed, str):
            revealed = [full_id(gateway, one) for one in revealed]
        made = gateway.export_supersession(
            named, out, complete=complete, as_of=as_of, with_payloads=revealed, recipient=recipient,
            idempotency_key=idempotency_key,
        )  # fmt: skip
    give(session, made, lambda: views.export(made))
    for warning in made.warnings:
        note(session, f"warning: {warning}")
