"""The JSON form of every answer."""

from typing import Any

import msgspec

from gateway.shapes.replies.base import Reply
from gateway.shapes.replies.upkeep import ImportItem
from gateway.shapes.replies.writes import Receipt

SCHEMA_VERSION = 1


def document(reply: Reply) -> dict[str, Any]:  # Any: JSON
    """Return the JSON form of an answer: `schema_version` first; ids that do not apply are left out of receipts."""
    body = msgspec.to_builtins(reply)
    if isinstance(reply, Receipt | ImportItem):
        body = {key: value for key, value in body.items() if value is not None}
    return {"schema_version": SCHEMA_VERSION, **body}
