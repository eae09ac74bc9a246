"""The whole table of what may become of a revision: every standing that it can have, times every act (DESIGN §4.2).

An outcome is the standing that follows, or the code of the refusal. Below it, what one act says of another revision.
"""

import pytest

from ledger.errors import CorrigendaError
from ledger.memories import (
    Command,
    Contest,
    Forget,
    LineageState,
    Promote,
    Publish,
    Reject,
    Restore,
    Retire,
    Revoke,
    Supersede,
)
from tests.histories import patch
from tests.ledgers import correct, remember
from tests.specifications import Given, happened
from tests.specs.lineages import A, B, C, D, admit, held, history, then

CONFLICT = held(history(remember(A, "one")), B)
CONFLICTED = then(CONFLICT, Contest(first_revision=A, second_revision=B))
STANDINGS: dict[str, Given[Command, LineageState]] = {
    "processing unverified": held(history(), A),
    "processing revoked": then(held(history(), A), Revoke(revision=A)),
    "active unverified": history(remember(A, "one")),
    "active verified": history(remember(A, "one"), admit(A)),
    "active revoked": history(remember(A, "one"), Revoke(revision=A)),
    "conflicted unverified": CONFLICTED,
    "conflicted revoked": then(CONFLICTED, Revoke(revision=A)),
    "superseded unverified": history(remember(A, "one"), correct(A, B, "two")),
    "superseded revoked": history(remember(A, "one"), correct(A, B, "two"), Revoke(revision=A)),
    "rejected unverified": then(CONFLICTED, Reject(revision=A)),
    "rejected revoked": then(CONFLICTED, Revoke(revision=A), Reject(revision=A)),
    "retired unverified": history(remember(A, "one"), Retire(revision=A)),
    "retired revoked": history(remember(A, "one"), Retire(revision=A), Revoke(revision=A)),
    "forgotten unverified": history(remember(A, "one"), Forget(revision=A)),
    "forgotten revoked": history(remember(A, "one"), Revoke(revision=A), Forget(revision=A)),
}

DELETED, REVOKED, TRANSITION = "MEMORY_DELETED", "MEMORY_REVOKED", "INVALID_TRANSITION"
ACTS: dict[str, Command] = {
    "correct": correct(A, D, "four"),
    "retire": Retire(revision=A),
    "contest": Contest(first_revision=A, second_revision=C),
    "promote": Promote(revision=A, expected=None),
    "reject": Reject(revision=A),
    "admit": admit(A),
    "revoke": Revoke(revision=A),
    "forget": Forget(revision=A),
    "restore": Restore(revision=A),
    "publish": Publish(revision=A),
    "supersede": Supersede(revision=A, successors=("rev_x",)),
    "patch": patch(A, "tag"),
}
# One column per act, in the order above; "-" refuses with INVALID_TRANSITION, "x" with MEMORY_DELETED, "r" with
# MEMORY_REVOKED, "s" with MEMORY_ALREADY_SUPERSEDED, "i" with INVALID_INPUT.
CODES = {"-": TRANSITION, "x": DELETED, "r": REVOKED, "s": "MEMORY_ALREADY_SUPERSEDED", "i": "INVALID_INPUT"}
TABLE: dict[str, tuple[str, ...]] = {
    "processing unverified": (
        "-", "-", "conflicted unverified", "-", "rejected unverified", "-", "processing revoked",
        "forgotten unverified", "-", "active unverified", "-", "processing unverified",
    ),
    "processing revoked": (
        "-", "-", "r", "-", "rejected revoked", "-", "r", "forgotten revoked", "processing unverified", "r",
        "-", "r",
    ),
    "active unverified": (
        "superseded unverified", "retired unverified", "conflicted unverified", "-", "i", "active verified",
        "active revoked", "forgotten unverified", "-", "-", "superseded unverified", "active unverified",
    ),
    "active verified": (
        "superseded verified", "retired verified", "conflicted verified", "-", "i", "-", "active revoked",
        "forgotten verified", "-", "-", "superseded verified", "active verified",
    ),
    "active revoked": (
        "r", "r", "r", "-", "i", "r", "r", "forgotten revoked", "active unverified", "-", "r", "r",
    ),
    "conflicted unverified": (
        "-", "-", "conflicted unverified", "active unverified", "rejected unverified", "-",
        "conflicted revoked", "forgotten unverified", "-", "-", "-", "conflicted unverified",
    ),
    "conflicted revoked": (
        "-", "-", "r", "r", "rejected revoked", "-", "r", "forgotten revoked", "conflicted unverified", "-",
        "-", "r",
    ),
    "superseded unverified": (
        "s", "s", "-", "-", "-", "s", "superseded revoked", "forgotten unverified", "-", "s", "s", "s",
    ),
    "superseded revoked": (
        "s", "s", "-", "-", "-", "s", "r", "forgotten revoked", "superseded unverified", "s", "s", "s",
    ),
    "rejected unverified": (
        "-", "-", "-", "-", "-", "-", "-", "forgotten unverified", "-", "-", "-", "-",
    ),
    "rejected revoked": (
        "-", "-", "-", "-", "-", "-", "-", "forgotten revoked", "rejected unverified", "-", "-", "-",
    ),
    "retired unverified": (
        "x", "x", "x", "x", "x", "x", "retired revoked", "forgotten unverified", "active unverified", "x", "x",
        "x",
    ),
    "retired revoked": (
        "x", "x", "x", "x", "x", "x", "r", "forgotten revoked", "retired unverified", "x", "x", "x",
    ),
    "forgotten unverified": (
        "x", "x", "x", "x", "x", "x", "x", "x", "active unverified", "x", "x", "x",
    ),
    "forgotten revoked": (
        "x", "x", "x", "x", "x", "x", "x", "x", "active revoked", "x", "x", "x",
    ),
}  # fmt: skip


def standing_of(state: LineageState) -> str:
    """Return where A stands, in words."""
    values = state.revisions[A].values
    return f"{values.state} {values.trust}"


def outcome(before: Given[Command, LineageState], command: Command) -> str:
    """Return where A stands after a wish, or the code with which that was refused."""
    try:
        return standing_of(happened(before, command).state)
    except CorrigendaError as refused:
        return refused.code


@pytest.mark.parametrize("standing", STANDINGS)
def test_every_act_on_every_standing(standing: str) -> None:
    """Each act on each standing comes out as the table says.

    LM-18, LM-19, LM-20, LM-21, LM-26, LM-34, RC-10, RC-11, RC-42.
    """
    before = held(STANDINGS[standing], C)
    assert standing_of(before.state) == standing

    found = {act: outcome(before, command) for act, command in ACTS.items()}

    expected = {act: CODES.get(cell, cell) for act, cell in zip(ACTS, TABLE[standing], strict=True)}
    assert found == expected


@pytest.mark.parametrize("standing", STANDINGS)
def test_what_is_said_to_be_allowed_is(standing: str) -> None:
    """RC-42: the `allowed` of a refusal names just those acts that are not refused."""
    before = held(STANDINGS[standing], C)
    for command in ACTS.values():
        try:
            happened(before, command)
        except CorrigendaError as refused:
            if refused.code == TRANSITION:
                told = [act for act in refused.details["allowed"] if act in ACTS]
                assert sorted(told) == sorted(act for act in ACTS if outcome(before, ACTS[act]) not in CODES.values())
