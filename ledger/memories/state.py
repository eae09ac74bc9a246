"""What a lineage's events leave behind."""

from collections.abc import Mapping

from msgspec import Struct

from ledger.decider import State
from ledger.message import HEADLESS, ScopeIds, Standing, Values

FRESH = Values("active", "unverified", "verified")
HELD = Values("processing", "unverified", "verified")


class Withdrawal(Struct, frozen=True):
    """What `restore` may undo: where it was, which act (forget, retire, invalidate, revoke), what stood before it."""

    position: int
    act: str
    before: Values


class RevisionState(Struct, frozen=True, kw_only=True):
    """One revision. `since` is where its present values began; `withdrawals` are not yet undone, oldest first."""

    revision: str
    version: int
    values: Values
    since: int
    content_seq: int
    meta_seq: int
    content: str
    kind: str
    origin: str
    scope: ScopeIds
    visibility: str
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    withdrawals: tuple[Withdrawal, ...] = ()
    proposes: str | None = None  # the head that it was held to replace
    subjects: tuple[str, ...] = ()  # digests of the persons that it concerns


class LineageState(State, frozen=True, kw_only=True):
    """A whole lineage. `links` and `conflicts` map (newer, older) to the position, in this stream, that stated it."""

    standing: Standing = HEADLESS
    latest: str | None = None
    revisions: Mapping[str, RevisionState] = {}
    links: Mapping[tuple[str, str], int] = {}
    conflicts: Mapping[tuple[str, str], int] = {}

    @property
    def head(self) -> str | None:
        """Return the live revision, or None while the lineage is headless."""
        return self.standing.head
