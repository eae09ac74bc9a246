"""What people read of traces. Pure: a reply in, text out, and nothing stored leaves unless inert."""

from typing import TYPE_CHECKING

from cli.text import Paint, clip, count, inert, moment, pairs, plain

if TYPE_CHECKING:
    from gateway.shapes.replies.traces import SearchTrace, TracedCorrection, TraceSummary, TraceVerdict

_QUERY_COLUMNS = 60
_FORGOTTEN = "(what was asked was forgotten since)"


def trace(found: "SearchTrace", *, paint: Paint = plain) -> str:
    """What one retrieval was asked, chose and left out."""
    hits = [
        f"  {hit.rank}  {inert(hit.memory_id)}  {hit.revision_id}  score {hit.score:.3f}: {inert(hit.why)}"
        for hit in found.hits
    ]
    hits += [f"  {one.rank}  {_correction(one)}" for one in found.corrections]
    left_out = [
        f"  {inert(one.memory_id)}  {one.revision_id}  score {one.score:.3f}: {inert(one.reason)}"
        for one in found.excluded
    ]
    left_out += [f"  {_correction(one)}" for one in found.excluded_corrections]
    more = found.excluded_total - len(left_out)
    parts = [
        f"{paint('bold', found.trace_id)}  {_kind(found)}\n{pairs(_rows(found))}",
        "\n".join(["chosen:", *hits]) if hits else f"nothing was chosen ({inert(found.empty_reason or 'not visible')})",
        "\n".join(["left out:", *left_out, *([f"  … and {more} more"] if more > 0 else [])]) if left_out else "",
    ]
    return "\n\n".join(part for part in parts if part)


def met(verdict: "TraceVerdict") -> str:
    """Say what one retrieval made of a revision or a correction."""
    how = {
        "chosen": f"chosen, as number {verdict.rank}",
        "excluded": "left out",
    }.get(verdict.outcome, "not seen")
    score = "" if verdict.score is None else f" (score {verdict.score:.3f})"
    where = f"In the {verdict.kind} {verdict.trace_id} of {moment(verdict.at)} at position {verdict.position}"
    return f"{where} it was {how}{score}: {inert(verdict.reason)}."


def _kind(item: "SearchTrace | TraceSummary") -> str:
    return item.kind if item.about == "memories" else f"{item.kind} of {inert(item.about)}"


def _correction(one: "TracedCorrection") -> str:
    return f"{one.correction_id}  score {one.score:.3f}: {inert(one.why)}"


def _rows(found: "SearchTrace") -> list[tuple[str, str | None]]:
    filters = "  ".join(f"{name}={value}" for name, value in found.filters.items())
    return [
        ("asked", _FORGOTTEN if found.query is None else inert(found.query)),
        ("by", f"{inert(found.actor)} at {moment(found.at)}, position {found.position}"),
        ("for", inert("  ".join(f"{name}={value}" for name, value in found.scope.items()))),
        ("turn", None if found.turn is None else str(found.turn)),
        ("run", found.run and inert(found.run)),
        ("k", str(found.k)),
        ("filters", inert(filters)),
        ("at position", None if found.at_position is None else str(found.at_position)),
        ("compared by", inert(found.embedder) if found.embedder else "words"),
        ("warnings", inert(", ".join(found.warnings))),
        ("withheld", str(found.withheld) if found.withheld else None),
        ("digest", found.digest),
    ]


def listed(item: "TraceSummary", *, wide: bool = False) -> str:
    """One line per trace: when, by whom, for which session and turn, how much it chose, and what was asked."""
    asked = _FORGOTTEN if item.query is None else inert(item.query)
    place = [f"session {inert(item.session)}"] if item.session is not None else []
    place += [f"turn {item.turn}"] if item.turn is not None else []
    place += [f"run {inert(item.run)}"] if item.run is not None else []
    came = count(item.hits, "hit") if item.hits else inert(item.empty_reason or "nothing")
    left_out = f", {item.excluded} left out" if item.excluded else ""
    line = [
        item.trace_id, moment(item.at), _kind(item), inert(item.actor), *place, f"{came}{left_out}",
        asked if wide else clip(asked, _QUERY_COLUMNS),
    ]  # fmt: skip
    return "  ".join(line)
