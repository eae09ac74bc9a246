"""What the commands that write have in common: how they answer, and the sentences of their help."""

from typing import TYPE_CHECKING

from cli.context import Session
from cli.output import give, note
from cli.views import memories

if TYPE_CHECKING:
    from gateway.shapes.replies.writes import Receipt

CURSOR_NOTE = (
    "With --limit the answer ends with a cursor, which goes on as of the same position, with the same filters: in json "
    "and yaml as next_cursor, else as the last line on stderr. Without it everything is listed."
)
REV_NOTE = "REV is a revision id, or a memory id or name, which means its head."
TEXT_NOTE = "TEXT may be - (stdin) or @FILE; write @@ for a text that begins with @."
KINDS_NOTE = "fact, preference, learning, decision, procedure, task or other"


def give_receipt(session: Session, receipt: "Receipt", *, dry_run: bool) -> None:
    """Answer with what a write did, its warnings on stderr."""
    give(session, receipt, lambda: memories.receipt(receipt, dry_run=dry_run))
    for warning in receipt.warnings:
        note(session, f"warning: {warning}")
