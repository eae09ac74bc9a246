"""The past of the PEP history, held against what the file itself says: patches, moments, and what lies between two."""

import random
import re
import time
from bisect import bisect_right
from dataclasses import dataclass, field

import pytest

import corrigenda
from gateway.imports.pep_rows import ParsedRow, read_rows
from gateway.imports.peps import Link, Store, Unlink, plan
from tests.faults.ledger_hands import Pair
from tests.integration.conftest import Imported, opened

FIELDS = ("title", "status", "type", "replaces", "superseded_by", "abstract")  # in the order of a content's lines
QUESTIONS = 500
PAIRS = 8
ALL_BETWEEN_S = 20.0  # what a diff of the whole history may take at most, on a busy machine
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class Folded:
    """What the first steps of the file make of it: the rows of each PEP, the links that stand, each PEP's acts."""

    rows: dict[str, list[ParsedRow]] = field(default_factory=dict)
    links: set[Pair] = field(default_factory=set)
    acts: dict[str, list[str]] = field(default_factory=dict)

    def take(self, step: object) -> None:
        """Carry out one step."""
        match step:
            case Store(row):
                acts = self.acts.setdefault(row.name, [])
                acts.append("corrected" if acts and self.alive(row.name) else "begun" if not acts else "remembered")
                self.rows.setdefault(row.name, []).append(row)
                acts += ["retired"] * row.dead
            case Link():
                self.links.add(step.edge.names)
                self._both(step.edge.names, "linked")
            case Unlink():
                self.links.discard(step.edge.names)
                self._both(step.edge.names, "unlinked")
            case _:
                raise AssertionError(step)

    def _both(self, names: Pair, act: str) -> None:
        for name in names:
            self.acts[name].append(act)

    def alive(self, name: str) -> bool:
        """Report whether a PEP's last claim is alive."""
        return not self.rows[name][-1].dead

    def says(self, name: str) -> tuple[int, str, str, bool] | None:
        """Return a PEP's version, content and state, and whether it has a head; None before its first row."""
        if name not in self.rows:
            return None
        row, alive = self.rows[name][-1], self.alive(name)
        return len(self.rows[name]), row.content, "active" if alive else "retired", alive


class Truth:
    """The file, step by step, and at which position the ledger had carried out each."""

    def __init__(self, imported: Imported) -> None:
        self.steps = list(plan(read_rows(imported.history.path)))
        envelopes = [item.entry.envelope for item in imported.told.events]
        self.ends = [one.seq for one in envelopes[1:] if one.op_index == one.op_count - 1]
        assert len(self.ends) == len(self.steps)
        self.last = envelopes[-1].seq
        self.ats = [one.at for one in envelopes]

    def at(self, position: int) -> Folded:
        """Fold the steps that the ledger had carried out at a position."""
        folded = Folded()
        for step in self.steps[: bisect_right(self.ends, position)]:
            folded.take(step)
        return folded


@pytest.fixture(scope="module")
def truth(imported: Imported) -> Truth:
    """What the file says of the ledger at every position."""
    return Truth(imported)


# ---------------------------------------------------------------- history --patch


def named_by(diff: str) -> list[str]:
    """Return the fields of a PEP whose lines a diff of its content removes or adds."""
    found: set[str] = set()
    old = new = 0
    for line in diff.split("\n"):
        if hunk := _HUNK.fullmatch(line):
            old, new = (int(hunk[at]) - (hunk[at + 1] == "0") for at in (1, 3))
            continue
        if line[0] != " ":
            number = old if line[0] == "-" else new
            found.add(FIELDS[min(number, len(FIELDS)) - 1])
        old, new = old + (line[0] in " -"), new + (line[0] in " +")
    return [name for name in FIELDS if name in found]


def test_a_patch_names_exactly_what_the_row_changed(imported: Imported) -> None:
    """Given every later row of the file, when its PEP's patches are read, then they name the row's own `changed`."""
    rows: dict[str, list[ParsedRow]] = {}
    for row in read_rows(imported.history.path):
        assert isinstance(row, ParsedRow)
        rows.setdefault(row.name, []).append(row)
    later = 0
    with opened(imported.where) as gateway:
        for name, claims in rows.items():
            first, *items = gateway.history(name, patch=True).items
            assert isinstance(first, corrigenda.PatchedRevision) and first.patch is None
            for row, item in zip(claims[1:], items, strict=True):
                assert isinstance(item, corrigenda.PatchedRevision) and item.patch is not None
                assert item.patch.keys() <= {"content", "valid_from"}
                assert named_by(item.patch["content"].diff or "") == sorted(row.changed, key=FIELDS.index), (name, row)
                later += 1
    assert later == imported.history.rows - imported.history.lineages


# ---------------------------------------------------------------- explain --at


def test_an_explanation_of_the_past_is_a_fold_of_the_file(imported: Imported, truth: Truth) -> None:
    """Given 500 seeded PEPs and positions, when each is explained there, then it says what the file said by then."""
    chance = random.Random(20260102)
    names = sorted(imported.told.folded)
    asked = sorted((chance.randint(0, truth.last), chance.choice(names)) for _ in range(QUESTIONS))
    answered = 0
    with opened(imported.where) as gateway:
        for position, name in asked:
            expected = truth.at(position).says(name)
            try:
                told = gateway.explain(name, at=position)
            except corrigenda.NotFoundError:
                assert expected is None, (position, name)
                continue
            assert (told.version, told.content, told.state, told.head is not None) == expected, (position, name)
            assert all(entry.seq <= position for entry in told.audit)
            answered += 1
    assert QUESTIONS / 5 < answered < QUESTIONS


def test_a_time_means_what_was_recorded_by_then(imported: Imported, truth: Truth) -> None:
    """Given recorded times, when a PEP is explained at one, then as at the last whole append of at most that time."""
    chance = random.Random(7)
    with opened(imported.where) as gateway:
        for position in sorted(chance.sample(range(truth.last // 2, truth.last), 20)):
            greatest = max(seq for seq, at in enumerate(truth.ats) if at <= truth.ats[position])
            whole = truth.ends[bisect_right(truth.ends, greatest) - 1]
            told = gateway.explain("pep-8", at=truth.ats[position])
            assert told.at_position == whole
            assert told == gateway.explain("pep-8", at=whole)


# ---------------------------------------------------------------- diff A B


def test_what_lies_between_two_positions_is_what_the_file_changed(imported: Imported, truth: Truth) -> None:
    """Given seeded pairs of positions and the whole ledger, when compared, each PEP's acts and heads are the file's."""
    chance = random.Random(42)
    pairs = [(chance.randint(0, truth.last), chance.randint(0, truth.last)) for _ in range(PAIRS)]
    with opened(imported.where) as gateway:
        for first, last in [(0, truth.last), *map(sorted, pairs)]:
            before, after = truth.at(first), truth.at(last)
            found = {
                item.memory_id: item
                for item in gateway.diff_between(first, last)
                if isinstance(item, corrigenda.MemoryDiff)
            }
            acts = {name: told[len(before.acts.get(name, ())) :] for name, told in after.acts.items()}
            assert {name: list(item.acts) for name, item in found.items()} == {
                n: told for n, told in acts.items() if told
            }
            for name, item in found.items():
                assert said(item.before) == before.says(name)
                assert said(item.after) == after.says(name)
                assert pairs_of(item.linked) == {pair for pair in after.links - before.links if name in pair}
                assert pairs_of(item.unlinked) == {pair for pair in before.links - after.links if name in pair}


def said(then: corrigenda.MemoryThen | None) -> tuple[int, str | None, str, bool] | None:
    """Return what is held against the file."""
    return None if then is None else (then.version, then.content, then.state, then.head is not None)


def pairs_of(edges: tuple[corrigenda.LineageEdge, ...]) -> set[Pair]:
    """Return the ends of links, by name."""
    return {(edge.source, edge.target) for edge in edges}


def test_everything_is_compared_in_bounded_time(imported: Imported, truth: Truth) -> None:
    """Given the whole history, when compared from its first position to its last, then that is a matter of seconds."""
    with opened(imported.where) as gateway:
        began = time.monotonic()
        count = sum(1 for _ in gateway.diff_between(0, truth.last))
        assert time.monotonic() - began < ALL_BETWEEN_S
    assert count == imported.history.lineages
