"""What was forgotten is served by no reader and no export, in whatever form it asks, now or about the past.

Every text that a memory and what is said of it can hold has the same word in it, too long for a random id or key to
hold it by chance.
"""

import gzip
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from cli.views import corrections as correction_views
from cli.views import events as event_views
from cli.views import graph
from cli.views import memories as memory_views
from cli.views import patches as patch_views
from gateway.reading.corrections import Corrections, Found
from gateway.service import Gateway
from ledger.verified import Record
from tests.integration.conftest import Here

SECRET = "zanzibar-lululu"
TEXT = f"the safe is in {SECRET}"
INSTITUTIONAL = {
    "id": "p1", "role": "procedure", "source_refs": [SECRET], "boundary_conditions": ["always"],
    "steps": [{"id": "1", "instruction": f"go to {SECRET}"}],
    "review": {"reviewed_at": "2026-01-02T03:04:05Z", "expires_at": None},
}  # fmt: skip
APPLIES = {"match": "all", "conditions": [{"id": "c", "kind": "topic", "value": SECRET}]}

Reading = Callable[[Gateway], object]
READINGS: Mapping[str, Reading] = {
    "show": lambda gateway: [gateway.show(one) for one in _revisions(gateway)],
    "show, for people": lambda gateway: [memory_views.revision(gateway.show(one)) for one in _revisions(gateway)],
    "explain": lambda gateway: [gateway.explain(one) for one in _revisions(gateway)],
    "explain, in the past": lambda gateway: gateway.explain("safe", at=_born(gateway)),
    "history": lambda gateway: gateway.history("safe"),
    "history, as patches": lambda gateway: gateway.history("safe", patch=True),
    "history, as patches for people": lambda gateway: patch_views.history(gateway.history("safe", patch=True)),
    "lineage": lambda gateway: gateway.lineage("safe"),
    "lineage, as a tree": lambda gateway: graph.tree(gateway.lineage("safe")),
    "lineage, as a graph": lambda gateway: graph.lanes(gateway.lineage("safe")),
    "lineage, as dot": lambda gateway: graph.dot(gateway.lineage("safe")),
    "lineage of the correction": lambda gateway: gateway.lineage(_correction(gateway)),
    "diff": lambda gateway: gateway.diff("safe", "other"),
    "diff of the project": lambda gateway: [*gateway.diff_between(_born(gateway) - 1, _born(gateway))],
    "diff up to now": lambda gateway: [*gateway.diff_between(0, _head(gateway))],
    "search": lambda gateway: gateway.search(f"where is {SECRET}", why=True),
    "search in the past": lambda gateway: gateway.search(TEXT, at_position=_born(gateway)),
    "search of the past": lambda gateway: gateway.search(TEXT, as_of="2999-01-01T00:00:00Z"),
    "list": lambda gateway: gateway.list_memories(states=["active", "forgotten"]),
    "list of one": lambda gateway: gateway.list_memories(
        states=["active", "rejected", "forgotten", "superseded"], memory="safe"
    ),
    "event": lambda gateway: [gateway.show_event(item.seq) for item in gateway.events()],
    "event, for people": lambda gateway: [event_views.event(gateway.show_event(one.seq)) for one in gateway.events()],
    "trace": lambda gateway: [gateway.show_trace(one) for one in {item.trace_id for item in gateway.events()}],
    "corrections": lambda gateway: gateway.list_corrections(states=ALL_STATES),
    "corrections, a page": lambda gateway: gateway.page_corrections(states=ALL_STATES),
    "corrections, for people": lambda gateway: [
        correction_views.line(one) for one in gateway.list_corrections(states=ALL_STATES)
    ],
    "correction": lambda gateway: gateway.show_correction(_correction(gateway)),
    "correction, explained": lambda gateway: gateway.explain_correction(_correction(gateway)),
    "correction, for people": lambda gateway: correction_views.correction(
        gateway.explain_correction(_correction(gateway))
    ),
    "correction, in the past": lambda gateway: gateway.explain_correction(_correction(gateway), at=_head(gateway)),
    "chain of corrections": lambda gateway: gateway.correction_history(_correction(gateway)),
    "chain, as patches": lambda gateway: gateway.correction_history(_correction(gateway), patch=True),
    "chain, as patches for people": lambda gateway: patch_views.corrections(
        gateway.correction_history(_correction(gateway), patch=True)
    ),
    "search for corrections": lambda gateway: gateway.search_corrections(TEXT, min_score=0),
    "block of corrections": lambda gateway: gateway.render_corrections(TEXT, agent="bot", min_score=0, learnings=5),
    "cases of corrections": lambda gateway: [*gateway.eval_cases()],
}
ALL_STATES = ["unconfirmed", "active", "superseded", "revoked"]
# What tells nothing of a text, whether that was forgotten or not.
SILENT: Mapping[str, Reading] = {
    "log": lambda gateway: [*gateway.events()],
    "log, for people": lambda gateway: [event_views.event_line(item) for item in gateway.events()],
    "envelopes": lambda gateway: [gateway.raw(item.seq).decode() for item in gateway.events()],
    "statistics": lambda gateway: gateway.correction_stats(by=["agent", "period"]),
    "status": lambda gateway: gateway.status(),
    "names": lambda gateway: gateway.complete("rev_"),
}
EXPORTS: Mapping[str, Callable[[Gateway, Path], object]] = {
    **{
        f"{kind} as {name}": lambda gateway, out, kind=kind, name=name, form=form: getattr(gateway, f"export_{kind}")(
            out / f"of.{name}", form=form
        )
        for kind in ("ledger", "corrections")
        for name, form in {"csv": "csv", "csv.gz": "csv", "jsonl": "jsonl", "bundle": "bundle", "tar": "bundle"}.items()
    },
    "supersession": lambda gateway, out: gateway.export_supersession(["safe"], out / "of"),
    "supersession, whole": lambda gateway, out: gateway.export_supersession(["safe"], out / "of", complete=True),
    "supersession, of named revisions": lambda gateway, out: gateway.export_supersession(
        ["safe"], out / "of", with_payloads=_revisions(gateway)
    ),
    "ledger, whole": lambda gateway, out: gateway.export_ledger(out / "of", complete=True),
    "corrections, whole": lambda gateway, out: gateway.export_corrections(out / "of", complete=True),
    "ledger, of the past": lambda gateway, out: gateway.export_ledger(out / "of", form="csv", as_of=_born(gateway)),
}


def _born(gateway: Gateway) -> int:
    """Return the position at which the text with all that it holds to was there."""
    return next(item.seq for item in gateway.events() if item.type == "revision.corrected.v1")


def _head(gateway: Gateway) -> int:
    return [item.seq for item in gateway.events()][-1]


def _revisions(gateway: Gateway) -> list[str]:
    return [item.revision_id for item in gateway.history("safe").items]


def _correction(gateway: Gateway) -> str:
    return gateway.list_corrections(states=ALL_STATES)[-1].correction_id


def lived(gateway: Gateway) -> Gateway:
    """Make a memory in which every text that can be given has the word in it, and corrections of it."""
    said = {"tags": [SECRET], "sources": [f"mail of {SECRET}"], "subjects": [SECRET], "reason": f"heard in {SECRET}"}
    gateway.remember(f"{TEXT}, they say", memory_id="safe", kind="procedure", **said)
    gateway.remember(
        TEXT, kind="procedure", predecessor="safe", applies=APPLIES, institutional=INSTITUTIONAL, **said
    )  # fmt: skip
    gateway.patch("safe", tags=[SECRET, "door"], reason=f"it is {SECRET}")
    gateway.patch("safe", sources=[f"book of {SECRET}"], reason=f"not the mail of {SECRET}")
    gateway.revoke("safe", reason=f"{SECRET}?")
    gateway.restore("safe", reason=f"{SECRET}!")
    gateway.retire("safe", reason=f"no {SECRET}")
    gateway.restore("safe", reason=f"but {SECRET}")
    gateway.contest(
        "safe",
        gateway.remember(f"{TEXT} never", hold=True, predecessor="safe", kind="procedure", **said).revision_id or "",
        reason=f"{SECRET}, yes or no",
    )
    gateway.promote(_revisions(gateway)[1], reason=f"{SECRET}, yes")
    recorded = gateway.record_correction(
        agent="bot", original_value=TEXT, corrected_value=f"{TEXT} now", memory="safe", visibility="tenant",
        reason=f"seen in {SECRET}", original_input=f"is it in {SECRET}?", tags=[SECRET], entity_key="e", field="f",
    )  # fmt: skip
    gateway.supersede_correction(recorded.correction_id or "", corrected_value=f"{TEXT} still", reason=f"in {SECRET}")
    gateway.remember("something else", memory_id="other", kind="procedure")
    return gateway


def forget(gateway: Gateway) -> Gateway:
    """Forget all revisions of the memory that are not forgotten yet."""
    for item in gateway.history("safe").items:
        if item.state != "forgotten":
            gateway.forget(item.revision_id, reason="nobody's business")
    return gateway


def told(answer: object) -> str:
    """Return an answer as text."""
    return answer if isinstance(answer, str) else json.dumps(msgspec.to_builtins(answer))


def written(folder: Path) -> Iterator[str]:
    """Yield what lies in a folder, packed or not."""
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if path.suffix == ".tar":
            with tarfile.open(path) as packed:
                packed.extractall(folder / "unpacked", filter="data")
            yield from written(folder / "unpacked")
        else:
            raw = path.read_bytes()
            yield (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", "replace")


def holding(gateway: Gateway, folder: Path) -> set[str]:
    """Return the names of the readings and exports in which the word is."""
    found = {name for name, read in {**READINGS, **SILENT}.items() if SECRET in told(read(gateway))}
    for name, export in EXPORTS.items():
        (folder / name).mkdir(parents=True)
        export(gateway, folder / name)
        found |= {name for text in written(folder / name) if SECRET in text}
    return found


def test_nothing_that_was_said_of_it_comes_out(open_here: Here, tmp_path: Path) -> None:
    """RC-10, RC-31: what every reader and export tells of a memory, no one of them tells once all of it is forgotten.

    Neither to the operator, but for lines, which are a copy for who administers, and may leave it out; what was
    restored is told again.
    """
    gateway = lived(open_here())
    exporter = open_here(permissions=["read", "export"])
    everything = READINGS.keys() | EXPORTS.keys()
    assert holding(gateway, tmp_path / "before") == everything
    assert holding(exporter, tmp_path / "exported before") == everything

    forget(gateway)

    assert holding(gateway, tmp_path / "after") == {"ledger as jsonl", "corrections as jsonl"}
    gateway.export_ledger(tmp_path / "without.jsonl", form="jsonl", without_forgotten=True)
    assert SECRET not in (tmp_path / "without.jsonl").read_text()
    assert holding(exporter, tmp_path / "exported after") == set()
    for item in reversed(gateway.history("safe").items):
        gateway.restore(item.revision_id)
    assert holding(gateway, tmp_path / "again") == everything


def test_ids_states_and_times_of_it_stay(open_here: Here) -> None:
    """RC-31: given all of it forgotten, then what happened, when, by whom and why it was forgotten is still told."""
    gateway = lived(open_here())
    before = [(item.revision_id, item.version, item.recorded_at) for item in gateway.history("safe").items]
    forget(gateway)
    assert [(item.revision_id, item.version, item.recorded_at) for item in gateway.history("safe").items] == before
    assert {item.state for item in gateway.history("safe").items} == {"forgotten"}
    audit = gateway.explain("safe").audit
    assert {entry.reason for entry in audit} == {None, "nobody's business"}
    assert [entry.type for entry in audit][:3] == [
        "memory.remembered.v1", "revision.corrected.v1", "metadata.patched.v1"
    ]  # fmt: skip
    corrections = gateway.list_corrections(states=ALL_STATES)
    assert [(one.state, one.forgotten, one.entity_key, one.field) for one in corrections] == [
        ("superseded", True, "e", "f"), ("active", True, "e", "f")
    ]  # fmt: skip
    assert {one.original_value for one in corrections} == {None}
    born = gateway.show_event(_born(gateway))
    assert (born.payload, born.forgotten, born.erased) == (None, True, False)


def test_a_tag_is_still_a_filter(open_here: Here) -> None:
    """LM-08: a filter answers the same whether a revision was forgotten since or not, so pages do not skip."""
    gateway = forget(lived(open_here()))
    found = gateway.list_memories(states=["forgotten"], tags=["door"])
    assert {item.tags for item in found.items} == {()}


def test_what_is_forgotten_while_an_answer_is_made_is_not_in_it(
    open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G6: given a correction that was confirmed, when its memory is forgotten before the answer, then it is no hit."""
    gateway, other = open_here(), open_here()
    gateway.remember(TEXT, memory_id="safe")
    gateway.record_correction(agent="bot", original_value=TEXT, corrected_value=f"{TEXT} now", memory="safe")
    confirmed, forgotten = Corrections.confirmed, list[str]()

    def then_forgotten(self: Corrections, record: Record, correction: str) -> Found | None:
        found = confirmed(self, record, correction)
        if not forgotten:
            forgotten.append(other.forget("safe").revision_id or "")
        return found

    assert len(gateway.search_corrections(TEXT, min_score=0, agent="bot").hits) == 1
    monkeypatch.setattr(Corrections, "confirmed", then_forgotten)
    assert gateway.search_corrections(TEXT, min_score=0, agent="bot").hits == ()
    assert forgotten


def test_what_is_restored_is_served_again(gateway: Gateway) -> None:
    """Given the forgotten memory, when all of it is restored, then the correction of it is told again, and not before.

    A correction says what was before and what came of it, so it is told once neither is forgotten any more.
    """

    def told() -> list[bool]:
        return [SECRET in node.label for node in gateway.lineage("safe").nodes if node.type == "correction"]

    gateway.remember(TEXT, memory_id="safe")
    gateway.record_correction(agent="bot", original_value=TEXT, corrected_value=f"{TEXT} now", memory="safe")
    forget(gateway)

    before, after = (item.revision_id for item in gateway.history("safe").items)
    gateway.restore(after)
    assert told() == [False]

    gateway.restore(before)

    assert told() == [True]
