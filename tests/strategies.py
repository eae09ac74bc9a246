"""Hypothesis strategies that more than one property uses."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.memories import (
    Admission,
    Admit,
    Command,
    Contest,
    Correct,
    Forget,
    Promote,
    Publish,
    Reject,
    Remember,
    Restore,
    Retire,
    Revoke,
    StateLink,
    Supersede,
    WithdrawLink,
)
from tests.histories import held, instead, patch
from tests.ledgers import correct, remember

# Every character that the closed form allows: no NUL, no surrogates. Control characters, quotes, astral and
# right-to-left ones are made more often than chance would.
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
    st.sampled_from('"\\/\b\t\n\f\r\x01\x1f\x7f\u2028\u200f\u05d0é\u0301😀\U0010ffff'),
)
TEXTS = st.text(CHARACTERS, max_size=40)

REVISIONS = [f"rev_{number}" for number in range(4)]
LINEAGES = ["mem_0", "mem_1"]
NEW = "rev_new"


class Drawn(NamedTuple):
    """What a wish may be about."""

    revision: str
    content: str
    newer: str
    older: str
    other: str = REVISIONS[0]


# Every act that one stream decides. A new one is a line here, and every property knows it. The ids of new revisions are
# given by `tests.properties`, after their number.
WISHES: dict[str, Callable[[Drawn], Command]] = {
    "remember": lambda drawn: remember(NEW, drawn.content),
    "replace": lambda drawn: instead(NEW, drawn.content, drawn.revision),
    "hold": lambda drawn: held(NEW, drawn.content),
    "hold for": lambda drawn: held(NEW, drawn.content, drawn.revision),
    "publish": lambda drawn: Publish(revision=drawn.revision),
    "correct": lambda drawn: correct(drawn.revision, NEW, drawn.content),
    "merge": lambda drawn: replace(correct(drawn.revision, NEW, drawn.content), merged=("rev_x",), split=("rev_y",)),
    "supersede": lambda drawn: Supersede(revision=drawn.revision, successors=("rev_x", "rev_y")),
    "patch": lambda drawn: patch(drawn.revision, drawn.content),
    "retire": lambda drawn: Retire(revision=drawn.revision),
    "revoke": lambda drawn: Revoke(revision=drawn.revision),
    "restore": lambda drawn: Restore(revision=drawn.revision),
    "forget": lambda drawn: Forget(revision=drawn.revision),
    "contest": lambda drawn: Contest(first_revision=drawn.revision, second_revision=drawn.other),
    "promote": lambda drawn: Promote(revision=drawn.revision, expected=None),
    "promote over": lambda drawn: Promote(revision=drawn.revision, expected=drawn.other),
    "reject": lambda drawn: Reject(revision=drawn.revision),
    "admit": lambda drawn: Admit(revision=drawn.revision, admission=Admission(evidence=(), reason=None)),
    "link": lambda drawn: StateLink(newer=drawn.newer, older=drawn.older, role="newer"),
    "unlink": lambda drawn: WithdrawLink(newer=drawn.newer, older=drawn.older, role="newer"),
}


@st.composite
def commands(draw: st.DrawFn, revisions: Sequence[str] = REVISIONS) -> Command:
    """One wish about a lineage, sensible or not; a new revision's id is drawn by `tests.properties`."""
    revision, content = draw(st.sampled_from(revisions)), draw(st.sampled_from(["one", "two", "three"]))
    newer, older = draw(st.permutations(LINEAGES))
    other = draw(st.sampled_from(revisions))
    wish = draw(st.sampled_from(sorted(WISHES)))
    return WISHES[wish](Drawn(revision, content, newer, older, other))


def with_new_id(wish: Command, fresh: str) -> Command:
    """Return the wish with the id that the revision which it makes, if it makes one, is to have."""
    match wish:
        case Remember():
            return replace(wish, revision=fresh)
        case Correct():
            return replace(wish, successor=fresh)
        case _:
            return wish
