"""What of the outbox one embedder failed on: how often, why, and what is to become of it.

The rows of the outbox are only ever added, so what happens to them is kept aside, by event, item and the embedder's
signature. Nothing here is believed about a memory: the worst that an altered row does is that a search misses it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ledger.limits import ATTEMPTS_MAX
from ledger.store import QUERIES, Store

FAILING, PARKED, SKIPPED, SETTLED = "failing", "parked", "skipped", "settled"

Place = tuple[int, str]  # the position of the event that asks for it, and the revision or correction


class Failed(NamedTuple):
    """An effect that an embedder failed on. `at` is when that, or what became of it, was noted; `is_due` says whether
    it has waited long enough to be tried again.
    """

    seq: int
    revision: str
    signature: str
    state: str
    attempts: int
    code: str
    at: str
    is_due: bool

    @property
    def place(self) -> Place:
        """Return which effect it is."""
        return self.seq, self.revision


class Parking:
    """The failures of one ledger with one embedder, which its signature names."""

    def __init__(self, store: Store, signature: str) -> None:
        self._store = store
        self._signature = signature

    def all(self) -> list[Failed]:
        """Return every effect that it ever failed on, in order."""
        return failures(self._store, self._signature)

    def add(self, failed: Mapping[Place, str]) -> None:
        """Note failures, each with its code; the last attempt parks."""
        self._write("add_failures", failed, codes=[*failed.values()], attempts_max=ATTEMPTS_MAX)

    def begin(self, places: Collection[Place]) -> None:
        """Count one more attempt at each of these, before it is made."""
        self._write("begin_attempts", places, attempts_max=ATTEMPTS_MAX)

    def end(self, ended: Mapping[Place, str]) -> None:
        """Note what became of attempts: a code, or an empty one for what is in now, or not wanted."""
        self._write("end_attempts", ended, codes=[*ended.values()])

    def take_back(self, places: Collection[Place]) -> None:
        """Count one attempt less: nothing was found out about these."""
        self._write("take_attempts_back", places)

    def retry(self, positions: Collection[int]) -> None:
        """Have what the events at these positions ask for tried as if it had never failed."""
        self._store.write("retry_failures", seqs=[*positions], signature=self._signature)

    def _write(self, query: str, places: Iterable[Place], **params: object) -> None:
        listed = [*places]
        if listed:
            self._store.write(
                query,
                seqs=[seq for seq, _ in listed],
                revisions=[revision for _, revision in listed],
                signature=self._signature,
                **params,
            )


def failures(store: Store, signature: str | None = None) -> list[Failed]:
    """Return every effect that an embedder ever failed on, or that any did, in order."""
    return [Failed(*row) for row in store.query(QUERIES["read_failures"], {"signature": signature})]


def waiting(store: Store, signature: str | None, after: int, *, rows_after: int | None = None) -> tuple[int, int]:
    """Return how many effects are carried by themselves, and how many are parked, for who has carried up to `after`.

    Rows count above `rows_after`, where that is another. Without a signature the failures of all embedders count.
    """
    params = {"signature": signature, "after": after, "rows_after": after if rows_after is None else rows_after}
    ((pending, parked),) = store.query(QUERIES["count_waiting"], params)
    return int(pending), int(parked)
