"""What a verification says: for each check its outcome and first bad position, and one exit for the whole.

It only words what the other modules found. A check that could not be made is never ok.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

CHECKS = (
    "canonical", "chain", "streams", "seals", "tree", "payloads", "anchor", "checkpoints", "projections", "index"
)  # fmt: skip
LATER = {
    "projections": "the read models are compared when `--projections` asks for it",
    "index": "the index is compared when `--index` asks for it",
}
OUTSIDE = ("anchor", "checkpoints")  # what was kept outside the database, and is compared with it
CHAIN_BROKEN, CHECKPOINT_MISMATCH, NOT_VERIFIED = 10, 11, 15

Progress = Callable[[int, int], None]


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one check: `status` is ok, failed or skipped; `why` says what limits it."""

    status: str
    first_bad_position: int | None = None
    expected: str | None = None
    found: str | None = None
    why: str | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What a verification found.

    `events` were read; `size` and `head` are the ledger's, as its head row states them. `root` is that of the tree over
    the envelopes as they lie, null where not all of them were there to read. `unanchored_tail` is the number of last
    events that the anchor does not hold. `exit_code` is 0, 10 (a check failed), 11 (nothing failed but the anchor or a
    checkpoint) or 15 (seals could not be checked, or an anchor that is there could not be read).
    """

    ok: bool
    exit_code: int
    events: int
    size: int
    root: str | None
    head: str | None
    checks: Mapping[str, Check]
    unanchored_tail: int
    erased: int


class Findings:
    """The first bad position of each check."""

    def __init__(self) -> None:
        self.found: dict[str, Check] = {}

    def bad(self, check: str, position: int | None, expected: str, found: str) -> None:
        """Record a finding, unless the check failed at or below that position already."""
        known = self.found.get(check)
        at = None if known is None else known.first_bad_position
        if known is None or at is None or (position is not None and position < at):
            self.found[check] = Check(status="failed", first_bad_position=position, expected=expected, found=found)


def exit_of(checks: Mapping[str, Check]) -> int:
    """Return the lowest exit that applies to some checks: 10, 11 or 15, and 0 if none failed.

    A failure that only names what kept it from being made, and no position or expectation, is one of 15.
    """
    failed = {name: check for name, check in checks.items() if check.status == "failed"}
    if any(name not in OUTSIDE and check.expected is not None for name, check in failed.items()):
        return CHAIN_BROKEN
    if any(name in OUTSIDE and check.expected is not None for name, check in failed.items()):
        return CHECKPOINT_MISMATCH
    return NOT_VERIFIED if failed else 0
