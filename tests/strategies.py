"""Hypothesis strategies that more than one property uses."""

from hypothesis import strategies as st

from ledger.memories import (
    Admission,
    Admit,
    Command,
    Contest,
    Forget,
    Promote,
    Reject,
    Restore,
    Retire,
    Revoke,
    StateLink,
    WithdrawLink,
)
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


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """One wish about a lineage, sensible or not; a new revision's id is drawn by `tests.properties`."""
    revision, content = draw(st.sampled_from(REVISIONS)), draw(st.sampled_from(["one", "two", "three"]))
    other = draw(st.sampled_from(REVISIONS))
    newer, older = draw(st.permutations(LINEAGES))
    return draw(
        st.sampled_from(
            [
                remember("rev_new", content),
                correct(revision, "rev_new", content),
                Retire(revision=revision),
                Revoke(revision=revision),
                Restore(revision=revision),
                Forget(revision=revision),
                Contest(first_revision=revision, second_revision=other),
                Promote(revision=revision, expected=draw(st.one_of(st.none(), st.just(other)))),
                Reject(revision=revision),
                Admit(revision=revision, admission=Admission(evidence=(), reason=None)),
                StateLink(newer=newer, older=older, role="newer"),
                WithdrawLink(newer=newer, older=older, role="newer"),
            ]
        )
    )
