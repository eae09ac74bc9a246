"""What a policy decides: each change is an event, and what holds already is none."""

from ledger.message import Event
from ledger.policy import POLICY, PolicyNames, PolicySet, PolicyState, SetPolicy
from tests.specifications import given


def value(text: str, setting: str = "mode") -> SetPolicy:
    """Return the wish to set a value."""
    return SetPolicy(setting=setting, value=text, names=None, reason="why")


def names(*listed: str) -> SetPolicy:
    """Return the wish to set a list of names."""
    return SetPolicy(setting="corrections.agents", value=None, names=listed)


def test_a_setting_is_an_event_with_its_value_and_its_reason() -> None:
    """Given nothing, when a value is set, then the fact says the value and the payload why."""

    def check(event: Event, after: PolicyState) -> None:
        assert event.facts == PolicySet(setting="mode", value="agent_lifecycle")
        assert event.payload == PolicyNames(names=None, reason="why")
        assert after == PolicyState(version=1, values={"mode": "agent_lifecycle"})

    given(POLICY).when(value("agent_lifecycle")).then(check)


def test_names_stay_out_of_the_facts() -> None:
    """Given nothing, when names are set, then they stand in the payload only: they can be erased."""

    def check(event: Event, after: PolicyState) -> None:
        assert event.facts == PolicySet(setting="corrections.agents", value=None)
        assert event.payload == PolicyNames(names=("bot", "scout"), reason=None)
        assert after.values == {"corrections.agents": ("bot", "scout")}

    given(POLICY).when(names("bot", "scout")).then(check)


def test_what_holds_already_makes_no_event() -> None:
    """Given a value and names, when the same are set again, then nothing happens; another value is an event."""
    state = given(POLICY, value("deny"), names("bot")).state
    assert [*POLICY.decide(state, value("deny")), *POLICY.decide(state, names("bot"))] == []
    assert len(POLICY.decide(state, value("allow"))) == 1
    assert len(POLICY.decide(state, names())) == 1


def test_settings_do_not_touch_each_other() -> None:
    """Given two settings, when one is set, then the other is as it was."""
    state = given(POLICY, value("a", "x"), value("b", "y"), value("c", "x")).state
    assert state == PolicyState(version=3, values={"x": "c", "y": "b"})


def test_erased_names_are_nobodys() -> None:
    """Given names whose payload was erased, when the history is folded, then the list is empty, not everybody's."""
    event = Event(facts=PolicySet(setting="corrections.agents", value=None), payload=None, position=0)
    assert POLICY.fold([event]).values == {"corrections.agents": ()}
