"""What people read of a ledger's upkeep: its status, recovery, imports. Pure, and inert as all views."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.text import count, inert, pairs, table, wrapped

if TYPE_CHECKING:
    from gateway.shapes.replies.upkeep import ImportReport, Recovery, Status, Transfer

_COLUMNS = 80  # what a status fits in
_DIGITS = 16  # of a hash, where it only has to be recognised


def status(found: "Status") -> str:
    """One screen, one fact or part per line, in 80 columns; a chain that is not well comes first."""
    ledger = dict(found.ledger)
    state, problem = ledger.pop("chain", None), ledger.pop("problem", None)
    chain = [("chain", _said(state) + (f": {_said(problem)}" if problem else ""))] if state else []
    facts = [(name, _short(name, value)) for name, value in ledger.items() if value is not None]
    parts = [
        ("anchor", _anchor(found.anchor)),
        ("projections", _facts(found.projections)),
        ("index", _facts({**found.index, "pending": found.index_pending})),
        ("outbox", _facts(found.outbox)),
        ("revisions", _facts(found.memories) or "none"),
        ("conflicts", str(found.conflicts_open)),
        ("candidates", _facts(found.candidates) or "none"),
        *([("traces", _facts(found.traces))] if found.traces else []),
    ]
    unwell = state in ("broken", "unverified")
    rows = [*chain, *facts, *parts] if unwell else [*facts, *chain, *parts]
    return wrapped([(f"ledger {name}" if name == "id" else name, value) for name, value in rows], columns=_COLUMNS)


def _anchor(anchor: Mapping[str, Any]) -> str:  # Any: as in Status
    rest = {name: value for name, value in anchor.items() if name not in ("state", "why")}
    why = f" ({_said(anchor['why'])})" if anchor.get("why") else ""
    return f"{_said(anchor.get('state', 'unknown'))}{why}" + (f", {_facts(rest)}" if rest else "")


def _facts(values: Mapping[str, Any]) -> str:  # Any: as in Status
    return ", ".join(
        f"{_said(name)}: {_short(name, value)}" for name, value in values.items() if value not in (None, "")
    )


def _said(value: object) -> str:
    return inert(str(value))


def _short(name: str, value: object) -> str:
    """Return what a person needs of a value: of a hash its beginning, of an embedder's signature its model."""
    text = _said(value)
    if name == "head":
        return text[:_DIGITS]
    if name == "embedder":
        return dict(part.split("=", 1) for part in text.split(";") if "=" in part).get("model", text)
    return text


def recovery(done: "Recovery", *, changes: bool) -> str:
    """What start-up recovery did, or would do, and whether a person is needed."""
    rows = [(name, str(getattr(done, name))) for name in ("replayed", "skipped", "repaired", "parked")]
    rows += [("index", _facts(done.index)), *(("claim", _facts(claim)) for claim in done.claims)]
    verdict = "nothing needs a person" if done.ok else "something needs a person"
    return f"{verdict}{'' if changes else ' (nothing was changed)'}\n{pairs(rows)}"


def taken_over(report: "Transfer") -> str:
    """How many lines were stored, unchanged, refused and left out, and each refused line."""
    counts = f"{count(report.stored, 'line')} stored, {report.unchanged:,} unchanged, {report.rejected:,} rejected"
    admitted = f", of which {count(report.unverified, 'admission')}" if report.unverified else ""
    proof = "signed by its key" if report.verified else "not verified"
    rows = [(f"line {item.row}", item.code or "", inert(item.message or "")) for item in report.items]
    more = report.rejected - len(report.items)
    return "\n".join(
        [
            f"{counts}, {report.left_out:,} left out{admitted}",
            f"log {inert(report.origin)}, size {report.size:,}, root {report.root}, {proof}",
            *table(rows).splitlines(),
            *([f"and {more:,} more"] if more > 0 else []),
        ]
    )


def imported(report: "ImportReport") -> str:
    """How many rows were stored, unchanged and refused, and each refused row."""
    counts = f"{count(report.stored, 'row')} stored, {report.unchanged:,} unchanged, {report.rejected:,} rejected"
    links = f"{count(report.links, 'link')}, {count(report.unlinks, 'unlink')}, {report.waiting:,} waiting for a target"
    rows = [(f"row {item.row}", item.code or "", inert(item.message or "")) for item in report.items]
    return "\n".join([counts, links, *table(rows).splitlines()])
