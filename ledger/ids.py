"""What an id looks like. Ids are opaque and ours: a prefix that says the kind, and a ULID that says nothing.

Names that callers choose are never ids: they live in payloads, and `name.assigned` gives each an id of ours.
Minting needs a clock and chance, so it is done in `ledger.clock`; here ids are only typed and recognised.
"""

import re
from typing import NewType

MemoryId = NewType("MemoryId", str)
RevisionId = NewType("RevisionId", str)
StreamId = NewType("StreamId", str)

MEMORY, REVISION, CORRECTION, LEDGER, OP, TRACE = "mem", "rev", "cor", "led", "op", "trc"
NAME_PREFIXES = {
    "project": "prj",
    "actor": "pr",
    "agent": "agt",
    "user": "usr",
    "session": "ses",
    "task_family": "tf",
    "memory": MEMORY,
    "correction": CORRECTION,
}

_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_OURS = re.compile(rf"[a-z]{{2,5}}_{_ULID}")
_PREFIX_OF_OURS = re.compile(r"[a-z]{2,5}_[0-9A-HJKMNP-TV-Z]{6,26}")
_CALLERS_ID = re.compile(r"[A-Za-z0-9._:\-]{1,128}")


def is_ours(text: str) -> bool:
    """Report whether `text` has the shape of an id that only the ledger makes."""
    return _OURS.fullmatch(text) is not None


def is_prefix_of_ours(text: str) -> bool:
    """Report whether `text` may abbreviate one of our ids: at least six characters of its ULID."""
    return _PREFIX_OF_OURS.fullmatch(text) is not None


def is_callers_id(text: str) -> bool:
    """Report whether a caller may give this id to a record: 1 to 128 of `A-Z a-z 0-9 . _ : -`, not our shape."""
    return _CALLERS_ID.fullmatch(text) is not None and not is_ours(text)


def kind_of(identifier: str) -> str:
    """Return the prefix of an id of ours, which names its kind."""
    return identifier.partition("_")[0]
