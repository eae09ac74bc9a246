"""What the events of one append have to be among themselves, before any of them is decided.

An aggregate sees its own stream only. That a revision ends where another takes its place, and that both ends of a link
are told, is seen here.
"""

from collections.abc import Sequence

from gateway.transfer.lines import Told
from ledger.errors import refuse
from ledger.ids import CORRECTION, MEMORY, REVISION, is_ours, kind_of
from ledger.limits import SUPERSEDED_AT_ONCE_MAX
from ledger.memories import Birth, LineageLinked, LineageUnlinked, RevisionSuperseded
from ledger.message import Move


def check_links(events: Sequence[Told]) -> None:
    """Refuse links of which one end only is told. Errors: INVALID_INPUT."""
    for item in events:
        if not isinstance(item.facts, LineageLinked | LineageUnlinked):
            continue
        edge = item.facts.edges[0] if item.facts.edges else None
        ends = {other.line.stream for other in events if type(other.facts) is type(item.facts)}
        if edge is None or not {edge.newer, edge.older, item.line.stream} <= ends:
            refuse(
                "INVALID_INPUT", "A link is told of one of its ends only, so it cannot be stated here.", goes_on=True
            )


def check_edges(events: Sequence[Told]) -> None:
    """Refuse to supersede what does not end in the same append, by what does not begin in it."""
    moves: list[Move] = [move for item in events for move in getattr(item.facts, "moves", ())]
    born = {move.revision for move in moves if move.before is None}
    ended = {move.revision for move in moves if move.before is not None}
    for item in events:
        edges = item.facts.edges if isinstance(item.facts, Birth | RevisionSuperseded) else ()
        stated = [edge for edge in edges if edge.kind == "supersedes"]
        if len(stated) > 2 * SUPERSEDED_AT_ONCE_MAX or any(
            edge.newer not in born or edge.older not in ended for edge in stated
        ):
            refuse("INVALID_INPUT", "A revision takes the place of one that does not end with it.")


def check_ids(item: Told) -> None:
    """Refuse streams and revisions that bear ids of another shape than ours, or of another kind."""
    facts, stream = item.facts, item.line.stream
    prefix = kind_of(stream)
    if prefix in (MEMORY, CORRECTION) and not is_ours(stream):
        refuse("INVALID_INPUT", "An event is in a stream whose name is no id of ours.")
    moves: tuple[Move, ...] = getattr(facts, "moves", ())
    revisions = [*(move.revision for move in moves), getattr(facts, "revision", None)]
    corrections = [getattr(facts, "correction", None), getattr(facts, "successor", None)]
    for named, kind in ((revisions, REVISION), (corrections, CORRECTION)):
        if any(one is not None and not (is_ours(one) and kind_of(one) == kind) for one in named):
            refuse("INVALID_INPUT", "An event names a revision, or a correction, by something that is no id of ours.")
