"""Memories: a lineage of revisions, of which at most one is the head.

Two axes, never mixed: *state* (processing, active, superseded, conflicted, rejected, retired, forgotten) says what
became of a revision, *trust* (unverified, verified, revoked) how far it may be relied on. A lineage without a live
revision is headless. Links say that one lineage supersedes another, and touch neither's states.
"""

from ledger.decider import Command
from ledger.memories.commands import (
    Admit,
    Contest,
    Correct,
    Forget,
    Invalidate,
    Patch,
    Promote,
    Publish,
    Reject,
    Remember,
    Restore,
    Retire,
    Revoke,
    StateLink,
    Supersede,
    WithdrawLink,
)
from ledger.memories.deciding import LINEAGE
from ledger.memories.facts import (
    Birth,
    LearningInvalidated,
    LineageFacts,
    LineageLinked,
    LineageUnlinked,
    MemoryForgotten,
    MemoryRemembered,
    MemoryRestored,
    MemoryRetired,
    MetadataPatched,
    RevisionAdmitted,
    RevisionContested,
    RevisionCorrected,
    RevisionPromoted,
    RevisionPublished,
    RevisionRejected,
    RevisionRevoked,
    RevisionSuperseded,
)
from ledger.memories.folding import born_revision
from ledger.memories.rules import last_head, live
from ledger.memories.state import FRESH, HELD, LineageState, RevisionState, Withdrawal
from ledger.memories.text import Admission, Contradiction, Metadata, MetadataPatch, Provenance, RevisionText

__all__ = [
    "FRESH",
    "HELD",
    "LINEAGE",
    "Admission",
    "Admit",
    "Birth",
    "Command",
    "Contest",
    "Contradiction",
    "Correct",
    "Forget",
    "Invalidate",
    "LearningInvalidated",
    "LineageFacts",
    "LineageLinked",
    "LineageState",
    "LineageUnlinked",
    "MemoryForgotten",
    "MemoryRemembered",
    "MemoryRestored",
    "MemoryRetired",
    "Metadata",
    "MetadataPatch",
    "MetadataPatched",
    "Patch",
    "Promote",
    "Provenance",
    "Publish",
    "Reject",
    "Remember",
    "Restore",
    "Retire",
    "RevisionAdmitted",
    "RevisionContested",
    "RevisionCorrected",
    "RevisionPromoted",
    "RevisionPublished",
    "RevisionRejected",
    "RevisionRevoked",
    "RevisionState",
    "RevisionSuperseded",
    "RevisionText",
    "Revoke",
    "StateLink",
    "Supersede",
    "WithdrawLink",
    "Withdrawal",
    "born_revision",
    "last_head",
    "live",
]
