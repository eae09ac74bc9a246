"""Whether the live generation of the read models is what the events make of it, and nothing in it supersedes itself.

It reads, and changes nothing.

The digest of what is live is taken first, in one moment; then whoever reads the ledger for another purpose hands its
events on, and the two are compared. Only where they differ are the events read again, to name a row.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

from msgspec import Struct

from ledger.appending import PROJECTOR_VERSION
from ledger.chain import Envelope
from ledger.codec import NotCanonical, scan_envelope
from ledger.errors import CorrigendaError, failure
from ledger.store import Store
from projections import digests
from projections.digests import Difference
from projections.models import TABLES

PROJECTION_DRIFT = 12
_PAGE = 2_500


class Checked(Struct, frozen=True, kw_only=True):
    """What a check found: of which generation, up to which position, how many rows, and what differs in each table.

    `cycles` are ids that supersede themselves through others, by the read model; where nothing differs, by the events.
    """

    generation: int
    position: int
    rows: dict[str, int]
    differences: tuple[Difference, ...]
    cycles: tuple[str, ...]


class Check:
    """One check, from the moment it begins. Every event of the ledger has to be handed to `take`, in order."""

    def __init__(self, store: Store) -> None:
        """Take the digest of what is live."""
        self._store = store
        salt = digests.fresh_salt()
        aside = store.another()
        with closing(aside.database), aside.transaction(snapshot=True):
            self._row = aside.head()
            self._live = digests.sums(aside, self._row.gen, salt)
            self._cycles = digests.cycles(aside, self._row.gen)
        self._told = digests.Told(self._row.seq, salt)

    @property
    def problem(self) -> CorrigendaError | None:
        """Return why nothing can be said: SCHEMA_MISMATCH, if another projector version wrote what is live."""
        return None if self._row.projector == PROJECTOR_VERSION else _other_models(self._row.projector)

    def take(self, envelope: Envelope) -> None:
        """Take the next event."""
        self._told.take(envelope)

    @property
    def is_whole(self) -> bool:
        """Report whether all events were taken that the read models were to be made of."""
        return self._told.taken == self._row.seq + 1

    def result(self) -> Checked:
        """Compare, and name the first row that differs in each table."""
        places = digests.differing(self._told.sums(), self._live)
        return Checked(
            generation=self._row.gen,
            position=self._row.seq,
            rows=digests.rows_by_table(self._live),
            differences=tuple(self._named(places)),
            cycles=self._cycles,
        )

    def _named(self, places: list[tuple[str, str]]) -> Iterator[Difference]:
        if not places:
            return
        aside = self._store.another()
        found: dict[str, Counter[str]] = {}
        with closing(aside.database), aside.transaction(snapshot=True):
            row = aside.head()
            for table, bucket in places:
                found[table] = digests.parts_of(aside, row.gen, table, bucket)
        expected = digests.told_parts(_envelopes(self._store, row.seq), places)
        for table, _ in places:
            named = digests.difference(table, expected[table], found[table])
            yield named or Difference(table, "", (), ())  # it was put right meanwhile, and had been wrong


def _other_models(found: int) -> CorrigendaError:
    """Return SCHEMA_MISMATCH for read models that cannot be compared with what this version would write."""
    return failure(
        "SCHEMA_MISMATCH",
        f"Read models of version {PROJECTOR_VERSION} were expected, and these are of version {found}, so they cannot "
        "be compared with what the events give. Run `corrigenda projections rebuild`, or use the version that wrote "
        "them.",
        expected=PROJECTOR_VERSION,
        found=found,
    )


def rows_of(store: Store, gen: int) -> tuple[dict[str, int], int]:
    """Return how many rows a generation has in each table, and the last position that it has taken up."""
    ((*counts, last),) = store.query(digests.QUERIES["count_rows"], {"gen": gen})
    return dict(zip(TABLES, counts, strict=True)), 0 if last is None else last


def _envelopes(store: Store, until: int) -> Iterator[Envelope]:
    """Yield every event up to a position; they have been checked just before."""
    after = -1
    while after < until and (page := store.after(after, _PAGE)):
        for stored in page:
            if stored.seq <= until:
                try:
                    yield scan_envelope(stored.envelope)
                except NotCanonical:
                    return  # it was altered meanwhile: the next verification says so
        after = page[-1].seq
