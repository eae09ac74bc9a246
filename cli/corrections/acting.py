"""What is done with a correction: record, confirm, supersede, revoke."""

from typing import Any

import click

from cli.acts import REV_NOTE, TEXT_NOTE, give_receipt
from cli.bodies import Body, needed, request_of, takes_body
from cli.context import Session, full_id, pass_session
from cli.options import Verb, read_text, writes

_LEFT = "What it did to a memory or to learnings stays; the warnings name it."


@click.command(
    cls=Verb,
    epilog=f"{TEXT_NOTE} An empty --corrected-value says that the field should be empty. {REV_NOTE}\n\n"
    "\b\nExamples:\n  corrigenda corrections record --agent ap-reconciler --field chargeCode --entity-key MSC \\\n"
    '      --original-value THC --corrected-value DTHC --reason "MSC bills it apart" --project ap\n'
    "  corrigenda corrections record --agent ap --original-value Berlin --corrected-value Hamburg \\\n"
    "      --memory mem_01J9ZK --project ap",
)
@click.option("--agent", metavar="A", help="The agent that was corrected.")
@click.option("--original-value", metavar="V", help="What it put out.")
@click.option("--corrected-value", metavar="V", help="What was right.")
@click.option("--field", metavar="F", help="The field that was wrong.")
@click.option("--entity-key", metavar="K", help="What it was wrong about: a customer, a supplier.")
@click.option("--run", metavar="R", help="The run in which it happened.")
@click.option("--session", "conversation", metavar="S", help="The session in which it happened.")
@click.option("--original-input", metavar="TEXT", callback=read_text, help="What the agent was given.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag; repeatable.")
@click.option("--visibility", default="agent", show_default=True, metavar="V", help="agent, user, tenant or global.")
@click.option("--user", metavar="U", help="The user whom it concerns.")
@click.option("--memory", metavar="REV", help="Correct this memory too: its text becomes the corrected value.")
@takes_body
@writes(names_revision=False)
@click.option("--if-revision", type=int, metavar="N", help="Only if the memory's stream_version is still N.")
@pass_session
def record(
    session: Session,
    body: Body | None,
    conversation: str | None,
    dry_run: bool,
    idempotency_key: str | None,
    if_revision: int | None,
    **rest: Any,  # Any: the options that go to the gateway under their own names
) -> None:
    """Record what an agent put out and what was right.

    By a person it is active at once; by an agent (--actor agent:NAME) unconfirmed until a person confirms it.
    """
    from gateway.shapes.requests import RecordCorrectionRequest

    how: Body = {"dry_run": dry_run, "idempotency_key": idempotency_key, "if_revision": if_revision}
    fields = RecordCorrectionRequest.model_fields.keys() - how.keys()
    request = request_of(body, {**rest, "session": conversation}, fields)
    needed(request, "agent", "original_value", "corrected_value")
    session.require_project()
    with session.gateway() as gateway:
        if body is None and request["memory"] is not None:
            request["memory"] = full_id(gateway, request["memory"])
        receipt = gateway.record_correction(**request, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda corrections confirm cor_01J9ZK")
@click.argument("correction", metavar="ID")
@writes()
@pass_session
def confirm(session: Session, correction: str, dry_run: bool, **how: Any) -> None:  # Any: as in `record`
    """Vouch for what an agent reported."""
    with session.gateway() as gateway:
        receipt = gateway.confirm_correction(full_id(gateway, correction), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb, epilog=f"{_LEFT}\n\n\b\nExample:\n  corrigenda corrections supersede cor_01J9ZK --corrected-value OTHC"
)
@click.argument("correction", metavar="ID")
@click.option("--corrected-value", required=True, metavar="V", help="What is right after all.")
@writes()
@pass_session
def supersede(session: Session, correction: str, dry_run: bool, **how: Any) -> None:  # Any: as in `record`
    """Replace a correction that was wrong itself.

    The new one says the same, but for the corrected value.
    """
    with session.gateway() as gateway:
        receipt = gateway.supersede_correction(full_id(gateway, correction), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)


@click.command(
    cls=Verb, epilog=f'{_LEFT}\n\n\b\nExample:\n  corrigenda corrections revoke cor_01J9ZK --reason "a misreading"'
)
@click.argument("correction", metavar="ID")
@writes(reason_required=True)
@pass_session
def revoke(session: Session, correction: str, dry_run: bool, **how: Any) -> None:  # Any: as in `record`
    """Withdraw a correction, with a reason.

    It is not found, listed or counted any more; `show` and the log keep it.
    """
    with session.gateway() as gateway:
        receipt = gateway.revoke_correction(full_id(gateway, correction), dry_run=dry_run, **how)
    give_receipt(session, receipt, dry_run=dry_run)
