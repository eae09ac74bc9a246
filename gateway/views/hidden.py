"""What is still told of what was withdrawn from view: one rule, for every reader and every export.

Ids, states, times, names and who acted stay. What else a payload says of a hidden revision is not told: neither its own
event's nor that of one which mended, disputed or moved it, nor what a correction of it says. Why it was forgotten is
told, since nothing else says that. Nothing here asks who is reading.
"""

import msgspec

from gateway.scope.visible import spoken_of
from ledger.corrections import CorrectionText
from ledger.memories import LineageState, MemoryForgotten, RevisionState, RevisionText
from ledger.message import Facts


def is_hidden(item: RevisionState) -> bool:
    """Report whether a revision was withdrawn from view: then neither its text nor the text's hash is shown."""
    return item.values.state in ("forgotten", "erased")


def is_silenced(facts: Facts, state: LineageState) -> bool:
    """Report whether what an event of a memory says is not told any more, the whole memory being in this state now."""
    if isinstance(facts, MemoryForgotten):
        return False
    about = spoken_of(facts) or [state.head or state.latest or ""]
    return any(is_hidden(state.revisions[one]) for one in about if one in state.revisions)


def is_hidden_since(state: LineageState, revision: str) -> bool:
    """Report whether a revision of a memory, or what came of it, is hidden: then a correction of it tells no values.

    They are what was forgotten. A learning that a correction only withdrew is another text.
    """
    about = state.revisions.get(revision)
    found = () if about is None else (revision, *about.superseded_by)
    return any(is_hidden(state.revisions[one]) for one in found if one in state.revisions)


def bare(text: RevisionText) -> RevisionText:
    """Return what of a hidden revision's text is told: when it held, how sure it was, and by which run it was made."""
    return msgspec.structs.replace(
        text,
        applies=None,
        content="",
        institutional=None,
        provenance=msgspec.structs.replace(text.provenance, sources=()),
        reason=None,
        subjects=(),
        tags=(),
    )


def bare_correction(text: CorrectionText) -> CorrectionText:
    """Return what is told of a correction of a hidden revision: what it was about, and not what it says."""
    return msgspec.structs.replace(
        text, corrected_value="", original_input=None, original_value="", reason=None, tags=()
    )
