"""Whatever anybody asks of a correction, in whatever order: it only goes forward."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.corrections import CORRECTION, Confirm, CorrectionText, Record, Replace, Withdraw
from ledger.decider import Command
from ledger.errors import CorrigendaError
from ledger.message import Event
from tests.ledgers import SCOPE

RANK = {None: 0, "unconfirmed": 1, "active": 2, "superseded": 3, "revoked": 3}
TEXT = CorrectionText(
    corrected_value="b",
    entity_key=None,
    field=None,
    original_input=None,
    original_value="a",
    reason=None,
    recorded_at=None,
    run=None,
    tags=(),
)
RECORDS = st.builds(
    Record,
    content=st.just("c1"),
    contradiction=st.just("off"),
    origin=st.sampled_from(["human", "agent"]),
    revision=st.none(),
    scope=st.just(SCOPE),
    text=st.just(TEXT),
    visibility=st.just("agent"),
    state=st.sampled_from(["unconfirmed", "active"]),
)
WISHES = st.lists(
    st.one_of(
        RECORDS,
        st.just(Confirm(contradiction="off")),
        st.builds(Replace, content=st.sampled_from(["c1", "c2"]), successor=st.just("cor_b")),
        st.just(Withdraw(reason="r")),
    ),
    max_size=12,
)


@given(WISHES)
def test_a_correction_only_goes_forward(wishes: list[Command]) -> None:
    """It is recorded once, each event leaves it further on, and only a superseded one has a successor."""
    state, history = CORRECTION.initial, list[Event]()
    for wish in wishes:
        try:
            (decided,) = CORRECTION.decide(state, wish)
        except CorrigendaError as refusal:
            assert refusal.code in ("CORRECTION_NOT_FOUND", "INVALID_TRANSITION", "NO_CHANGE")
            continue
        event = decided.settled(len(history))
        after = CORRECTION.evolve(state, event)
        assert RANK[after.state] > RANK[state.state]
        assert isinstance(wish, Record) == (state.state is None)
        assert (after.state == "superseded") == (after.superseded_by is not None)
        state, history = after, [*history, event]
    assert state == CORRECTION.fold(history)
    assert state.version == len(history)
