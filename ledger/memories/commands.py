"""What can be wished of a lineage. Texts are payloads already, everything else an id or an enum."""

from ledger.decider import Command
from ledger.memories.text import Admission, Contradiction, MetadataPatch, RevisionText
from ledger.message import ScopeIds


class Remember(Command, frozen=True, kw_only=True):
    """Begin a lineage, give a headless one a new head, or replace the head that `predecessor` names.

    With `held` the revision waits to be published. `supersedes` are heads of other lineages that were split into it.
    """

    revision: str
    content: str
    kind: str
    origin: str
    scope: ScopeIds
    visibility: str
    text: RevisionText
    predecessor: str | None = None
    held: bool = False
    supersedes: tuple[str, ...] = ()


class Correct(Command, frozen=True, kw_only=True):
    """Replace a revision by one whose meaning is right.

    `merged` are heads of other lineages that end in the successor too; `split` are successors in lineages of their own.
    `scope` is that of the successor, where it cannot be the old one's whole.
    """

    revision: str
    successor: str
    content: str
    origin: str
    text: RevisionText
    merged: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    scope: ScopeIds | None = None


class Retire(Command, frozen=True, kw_only=True):
    """Withdraw knowledge that no longer holds."""

    revision: str
    cause: str = "person"


class Revoke(Command, frozen=True, kw_only=True):
    """Withdraw trust, whatever the revision's state."""

    revision: str


class Restore(Command, frozen=True, kw_only=True):
    """Undo the latest withdrawal of a revision: forgotten, retired, invalidated or revoked."""

    revision: str


class StateLink(Command, frozen=True, kw_only=True):
    """State that lineage `newer` supersedes lineage `older`; `role` is the part that this lineage plays."""

    newer: str
    older: str
    role: str


class WithdrawLink(StateLink, frozen=True, kw_only=True):
    """Withdraw a link that was stated."""


class Publish(Command, frozen=True, kw_only=True):
    """Let a held revision become active."""

    revision: str


class Supersede(Command, frozen=True, kw_only=True):
    """End a revision whose successors are in other lineages."""

    revision: str
    successors: tuple[str, ...]


class Patch(Command, frozen=True, kw_only=True):
    """Mend a revision's metadata; equal metadata makes no event."""

    revision: str
    patch: MetadataPatch


class Forget(Command, frozen=True, kw_only=True):
    """Withdraw a revision from view, whatever its state."""

    revision: str
    cause: str = "person"


class Contest(Command, frozen=True, kw_only=True):
    """Say that two revisions of this lineage contradict each other."""

    first_revision: str
    second_revision: str


class Promote(Command, frozen=True, kw_only=True):
    """Let a contested revision win; `expected` is the head that it replaces, or None."""

    revision: str
    expected: str | None


class Reject(Command, frozen=True, kw_only=True):
    """Turn down a held or contested revision."""

    revision: str


class Admit(Command, frozen=True, kw_only=True):
    """Vouch for a revision."""

    revision: str
    admission: Admission


class Invalidate(Command, frozen=True, kw_only=True):
    """Retire an unverified learning that a correction contradicts."""

    revision: str
    correction: str
    contradiction: Contradiction
