"""The PEP history as a plan: which acts make a ledger hold what the file's rows say, and in which order.

A PEP is a lineage (`pep-241`), a row a revision of it, and a dead status retires the head that its row makes.
Order is the order of the file, never of the times: they repeat, and one goes back by ten years.

Links are derived anew from the rows on every run, by one rule:

    A claim of PEP N states the edge (N, o) for every o that it replaces, and (s, N) for every s that it is
    superseded by. An edge is *stated* as long as the present claim of one of its two ends states it, whatever
    that end's status. It is linked when it is stated and both ends have arrived; it is unlinked by the row
    whose claim drops it while the other end does not state it; it may be stated, and linked, again.

So what happens to an edge follows from the histories of its two ends alone, and a file that holds the whole
histories of some PEPs plans the same acts, with the same keys, as the file that it was cut from. Row numbers
enter messages and reasons, never keys.

This module only computes. It must never touch the ledger.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from gateway.imports.pep_rows import BadRow, Edge, ParsedRow


class KeyMaterial(NamedTuple):
    """What an act's idempotency key is made of: `row`, `link 314 241` …, a line's bytes, n-th equal line."""

    act: str
    line: bytes
    occurrence: int


@dataclass(frozen=True, slots=True)
class Store:
    """Make the row's content the head of its lineage, and in the same append retire it if `retire`."""

    row: ParsedRow

    @property
    def retire(self) -> bool:
        """Report whether the new head is retired at once."""
        return self.row.dead

    @property
    def key(self) -> KeyMaterial:
        """Return what the act's idempotency key is made of."""
        return KeyMaterial("row", self.row.line, self.row.occurrence)


@dataclass(frozen=True, slots=True)
class Link:
    """State that `edge.newer` supersedes `edge.older`, as `row` says. `waited`: an end arrived after it."""

    edge: Edge
    row: ParsedRow
    waited: bool

    @property
    def reason(self) -> str:
        """Return the sentence that names the row."""
        return f"{_names(self.row)} states that {self.edge}."

    @property
    def key(self) -> KeyMaterial:
        """Return what the act's idempotency key is made of."""
        return _edge_key("link", self.edge, self.row)


@dataclass(frozen=True, slots=True)
class Unlink:
    """Withdraw `edge`, since `row` no longer states it and the other end's claim does not either."""

    edge: Edge
    row: ParsedRow

    @property
    def reason(self) -> str:
        """Return the sentence that names the row."""
        return f"{_names(self.row)} no longer states that {self.edge}."

    @property
    def key(self) -> KeyMaterial:
        """Return what the act's idempotency key is made of."""
        return _edge_key("unlink", self.edge, self.row)


Step: TypeAlias = Store | Link | Unlink | BadRow


def plan(rows: Iterable[ParsedRow | BadRow]) -> "Plan":
    """Return the steps that carry out `rows`, in order; a bad row comes through in its place."""
    return Plan(rows)


def settled(rows: Iterable[ParsedRow], stored: Container[int]) -> frozenset[int]:
    """Return the numbers of the rows not to be stored: they, or a later row of their lineage, already are.

    `stored` holds the numbers of the rows whose keys the ledger knows.
    """
    good = list(rows)
    last = {row.pep: row.place for row in good if row.number in stored}
    return frozenset(row.number for row in good if row.place <= last.get(row.pep, 0))


class Plan(Iterator[Step]):
    """The steps of an import, made as the rows come. What still waits can be asked at any time."""

    def __init__(self, rows: Iterable[ParsedRow | BadRow]) -> None:
        self._claims: dict[int, frozenset[Edge]] = {}
        self._stated: dict[Edge, ParsedRow] = {}  # with the row since which it is stated
        self._linked: set[Edge] = set()
        self._awaited: dict[int, set[Edge]] = {}  # by the PEP that has not arrived
        self._steps = self._all(rows)

    def __next__(self) -> Step:
        return next(self._steps)

    @property
    def waiting(self) -> tuple[Edge, ...]:
        """Return the edges stated and not linked: an end has not arrived, or both ends are one PEP."""
        return tuple(sorted(self._stated.keys() - self._linked))

    def _all(self, rows: Iterable[ParsedRow | BadRow]) -> Iterator[Step]:
        for row in rows:
            if isinstance(row, BadRow):
                yield row
                continue
            yield Store(row)
            before = self._claims.get(row.pep, frozenset())
            self._claims[row.pep] = row.edges
            yield from self._withdraw(row, before - row.edges)
            yield from self._state(row, row.edges - before)

    def _withdraw(self, row: ParsedRow, dropped: frozenset[Edge]) -> Iterator[Unlink]:
        for edge in sorted(dropped):
            if edge in self._claims.get(_other_end(edge, row.pep), ()):
                continue
            del self._stated[edge]
            if edge in self._linked:
                self._linked.remove(edge)
                yield Unlink(edge, row)

    def _state(self, row: ParsedRow, fresh: frozenset[Edge]) -> Iterator[Link]:
        for edge in fresh:
            self._stated.setdefault(edge, row)
        for edge in sorted(fresh | self._awaited.pop(row.pep, set())):
            if edge not in self._stated or edge in self._linked or edge.newer == edge.older:
                continue
            other = _other_end(edge, row.pep)
            if other in self._claims:
                self._linked.add(edge)
                yield Link(edge, self._stated[edge], waited=self._stated[edge] is not row)
            else:
                self._awaited.setdefault(other, set()).add(edge)


def _other_end(edge: Edge, pep: int) -> int:
    return edge.newer if pep == edge.older else edge.older


def _edge_key(act: str, edge: Edge, row: ParsedRow) -> KeyMaterial:
    return KeyMaterial(f"{act} {edge.newer} {edge.older}", row.line, row.occurrence)


def _names(row: ParsedRow) -> str:
    return f"Row {row.number} of the imported file (claim {row.place} of PEP {row.pep}, {row.valid_from})"
