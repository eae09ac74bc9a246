"""How a text enters a lineage: remembered, corrected, superseded from elsewhere, published after it was held."""

from ledger.errors import refuse
from ledger.memories.commands import Correct, Publish, Remember, Supersede
from ledger.memories.facts import MemoryRemembered, RevisionCorrected, RevisionPublished, RevisionSuperseded
from ledger.memories.rules import last_head, live, moved, next_version, standing, trusted
from ledger.memories.state import FRESH, HELD, LineageState, RevisionState
from ledger.message import HEADLESS, Edge, Event, Move, Reason, Values


def remember(state: LineageState, command: Remember) -> Event:
    _check_place(state, command)
    if command.predecessor is not None and not command.held:
        return _replaced(state, command, command.predecessor)
    values = HELD if command.held else FRESH
    proposed = () if command.predecessor is None else (Edge("proposes", command.revision, command.predecessor, None),)
    facts = MemoryRemembered(
        content=command.content,
        edges=(*proposed, *(Edge("supersedes", command.revision, older, None) for older in command.supersedes)),
        kind=command.kind,
        moves=(_born(state, command.revision, values),),
        origin=command.origin,
        scope=command.scope,
        standing=state.standing if command.held else standing(command.revision, command.first, command.first, FRESH),
        supports=(),
        visibility=command.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def _replaced(state: LineageState, command: Remember, predecessor: str) -> Event:
    old = state.revisions[predecessor]
    facts = RevisionCorrected(
        content=command.content,
        edges=(Edge("supersedes", command.revision, predecessor, None),),
        kind=old.kind,
        moves=(_demoted(old), _born(state, command.revision, FRESH)),
        origin=command.origin,
        scope=command.scope,
        standing=standing(command.revision, command.first, command.first, FRESH),
        supports=(),
        trace=None,
        visibility=command.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def _check_place(state: LineageState, command: Remember) -> None:
    """Refuse a text whose place in the lineage is taken, has moved, is not there any more, or is of another kind."""
    _check_head(state, command.predecessor, "The new revision was to")
    if state.latest is None:
        return
    latest = state.revisions[state.latest]
    if (latest.kind, latest.scope.project) != (command.kind, command.scope.project):
        refuse(
            "INVALID_INPUT",
            f"A memory keeps its kind and project for life: this one is of kind {latest.kind}. Give that kind, or "
            "remember the text under another id.",
        )
    if command.predecessor is not None and state.revisions[command.predecessor].content == command.content:
        refuse(
            "NO_CHANGE",
            "The new revision says what its predecessor says already; nothing was stored. Metadata is mended by "
            "`corrigenda memories patch`.",
        )


def _check_head(state: LineageState, expected: str | None, wish: str) -> None:
    """Refuse unless the head is the one that is expected, or, where none is, the lineage may begin anew."""
    if state.head != expected:
        wanted = "begin this memory anew" if expected is None else f"take the place of {expected}"
        now = "has no head" if state.head is None else f"has the head {state.head}"
        advice = "Leave the predecessor out" if state.head is None else "Correct that head, or name it as predecessor"
        refuse("STALE_PREDECESSOR", f"{wish} {wanted}, and the memory {now}. {advice}.", head=state.head)
    last = last_head(state) if state.head is None else None
    if last is not None:
        _check_may_go_on(state, last)


def _check_may_go_on(state: LineageState, last: RevisionState) -> None:
    """Refuse a new head where the last one was superseded from elsewhere, or withdrawn from view."""
    if last.superseded_by:
        refuse(
            "MEMORY_ALREADY_SUPERSEDED",
            f"This memory ended when {last.revision} was superseded by {', '.join(last.superseded_by)}, of another "
            "memory. Act on that one, or remember the text under another id.",
            revision_id=last.revision,
            superseded_by=list(last.superseded_by),
            head=state.head,
        )
    if last.values.state in ("forgotten", "erased"):
        refuse(
            "MEMORY_DELETED",
            f"This memory is gone: its last revision, {last.revision}, is {last.values.state}. Restore it if it was "
            "forgotten, or remember the text under another id.",
            revision_id=last.revision,
            kind=last.values.state,
        )


def correct(state: LineageState, command: Correct) -> Event:
    old = live(state, command.revision, "corrected")
    if old.content == command.content and not command.merged and not command.split:
        refuse("NO_CHANGE", "The correction says what the memory says already; nothing was stored.")
    olders, newers = (command.revision, *command.merged), command.split
    facts = RevisionCorrected(
        content=command.content,
        edges=(
            *(Edge("supersedes", command.successor, older, None) for older in olders),
            *(Edge("supersedes", newer, command.revision, None) for newer in newers),
        ),
        kind=old.kind,
        moves=(_demoted(old), _born(state, command.successor, FRESH)),
        origin=command.origin,
        scope=command.scope or old.scope,
        standing=standing(command.successor, command.first, command.first, FRESH),
        supports=(),
        trace=None,
        visibility=old.visibility,
    )
    return Event(facts=facts, payload=command.text, position=command.first)


def supersede(state: LineageState, command: Supersede) -> Event:
    """End a revision whose successors are in other lineages."""
    old = live(state, command.revision, "superseded")
    edges = tuple(Edge("supersedes", newer, command.revision, None) for newer in command.successors)
    facts = RevisionSuperseded(edges=edges, moves=(_demoted(old),), standing=HEADLESS)
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def publish(state: LineageState, command: Publish) -> Event:
    """Let a held revision become active, in place of the head that it was held to replace."""
    held = trusted(state, command.revision, ("processing",), "Only a held revision can be published")
    _check_head(state, held.proposes, f"{held.revision} was held to")
    active = Values("active", held.values.trust, held.values.floor)
    old = None if held.proposes is None else state.revisions[held.proposes]
    edges = () if old is None else (
        Edge("proposes", held.revision, old.revision, held.content_seq),
        Edge("supersedes", held.revision, old.revision, None),
    )  # fmt: skip
    facts = RevisionPublished(
        edges=edges,
        moves=(*(() if old is None else (_demoted(old),)), moved(held, active)),
        standing=standing(held.revision, held.content_seq, held.meta_seq, active),
    )
    return Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)


def _born(state: LineageState, revision: str, values: Values) -> Move:
    return Move(after=values, before=None, revision=revision, since=None, version=next_version(state))


def _demoted(old: RevisionState) -> Move:
    return moved(old, Values("superseded", old.values.trust, old.values.floor))
