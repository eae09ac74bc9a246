"""What a search can be asked: every filter is exact, says why it left something out, and costs no slots."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.service import Gateway
from ledger.errors import UnavailableError
from tests.house import WORDS, refused
from tests.integration.conftest import Here

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BEFORE, AFTER = "2026-05-01T00:00:00Z", "2026-07-01T00:00:00Z"


def contents(gateway: Gateway, query: str, **asked: Any) -> list[str | None]:
    """Return what a search serves, best first."""
    return [hit.content for hit in gateway.search(query, **asked).hits]


def reasons(gateway: Gateway, query: str, **asked: Any) -> list[str]:
    """Return why what is near was left out."""
    found = gateway.search(query, why=True, **asked)
    assert found.excluded is not None
    return [one.reason for one in found.excluded]


def conditions(match: str, *found: dict[str, str]) -> dict[str, Any]:
    """Return conditions with ids in the order given."""
    return {"match": match, "conditions": [{"id": f"c{n}", **one} for n, one in enumerate(found, start=1)]}


IN_API = {"kind": "context", "field": "directory", "value": "/srv/api"}
ABOUT_DEPLOYS = {"kind": "topic", "value": "roll back"}


def test_confidence_is_compared_as_a_number(gateway: Gateway) -> None:
    """OH-36: given confidences around c, then the one that equals c is returned, and one below or without is not."""
    for confidence in ("0.5", "0.50", "0.499999", "1", None):
        gateway.remember(f"the kiln burns, sure {confidence}", confidence=confidence)

    served = contents(gateway, "kiln burns", k=9, min_confidence="0.500")

    assert sorted(str(one)[-4:].strip() for one in served) == ["0.5", "0.50", "re 1"]
    assert sorted(reasons(gateway, "kiln burns", k=9, min_confidence="0.500")) == [
        "it says no confidence",
        "its confidence is 0.499999, below 0.500",
    ]
    with refused("VALIDATION_FAILED"):
        gateway.search("kiln", min_confidence="2")


def test_what_does_not_hold_now_is_left_out(open_here: Here) -> None:
    """Given memories that held before, hold now, or will hold, then a search of the present serves those that hold."""
    gateway = open_here(clock=lambda: NOON)
    gateway.remember("the pool is open in May", valid_to="2026-06-01T12:00:00Z")
    gateway.remember("the pool is open in June", valid_from="2026-06-01T12:00:00Z", valid_to=AFTER)
    gateway.remember("the pool is open in July", valid_from=AFTER)

    assert contents(gateway, "pool open") == ["the pool is open in June"]
    assert sorted(reasons(gateway, "pool open")) == [
        "it held only until 2026-06-01T12:00:00.000000Z",
        "it holds only from 2026-07-01T00:00:00.000000Z on",
    ]


def test_a_patched_end_counts_at_once(open_here: Here) -> None:
    """Given a memory without an end, when a patch gives it one that has passed, then it is not served any more."""
    gateway = open_here(clock=lambda: NOON)
    made = gateway.remember("the road is closed")
    assert contents(gateway, "road") == ["the road is closed"]

    gateway.patch(made.revision_id or "", valid_to=BEFORE)

    assert gateway.search("road").empty_reason == "filtered"


APPLYING = [
    ("all", (IN_API,), {"directory": "/srv/api"}, None),
    ("all", (IN_API,), {"directory": "/srv/web"}, "not applicable: condition c1: context directory is another"),
    ("all", (IN_API,), {}, "not applicable: condition c1: context directory was not given"),
    ("all", (IN_API, ABOUT_DEPLOYS), {"directory": "/srv/api"}, None),
    ("any", (IN_API, ABOUT_DEPLOYS), {}, None),
    ("all", ({"kind": "context", "field": "projectId", "value": "atlas"},), {}, None),
    ("all", ({"kind": "context", "field": "sessionId", "value": "s1"},), {}, None),
    ("all", ({"kind": "context", "field": "projectId", "value": "atlas"},), {"projectId": "borea"},
     "not applicable: condition c1: context projectId is another"),
    ("any", ({"kind": "topic", "value": "rolls"}, {"kind": "topic", "value": "back roll"}), {},
     "not applicable: no condition holds: its topic does not stand in the question"),
]  # fmt: skip


@pytest.mark.parametrize(("match", "found", "context", "reason"), APPLYING)
def test_a_memory_is_served_where_its_conditions_hold(
    gateway: Gateway, match: str, found: tuple[dict[str, str], ...], context: dict[str, str], reason: str | None
) -> None:
    """Given a memory with conditions, then it is served where they hold, and else left out with remem's reason."""
    gateway.remember("deploy steps", applies=conditions(match, *found))
    query = "deploy steps: how to ROLL, back?"

    asked = gateway.search(query, context=context, session="s1", why=True)

    assert [hit.content for hit in asked.hits] == ([] if reason else ["deploy steps"])
    assert [one.reason for one in asked.excluded or ()] == ([reason] if reason else [])


BAD_CONDITIONS = [
    {"match": "all", "conditions": []},
    {"match": "some", "conditions": [{"id": "c", **IN_API}]},
    {"match": "all", "conditions": [{"id": "c", **IN_API}, {"id": "c", **ABOUT_DEPLOYS}]},
    {"match": "all", "conditions": [{"id": "c", "kind": "context", "field": "planet", "value": "x"}]},
    {"match": "all", "conditions": [{"id": "c", "kind": "topic", "value": "…"}]},
    {"match": "all", "conditions": [{"id": "c", "kind": "topic", "value": "x", "field": "directory"}]},
    {"match": "all", "conditions": "directory"},
    ["all"],
]


@pytest.mark.parametrize("applies", BAD_CONDITIONS)
def test_conditions_that_mean_nothing_are_refused(gateway: Gateway, applies: Any) -> None:
    """RM-43: given no or repeated condition ids, an unknown field or no condition at all, then VALIDATION_FAILED."""
    with refused("VALIDATION_FAILED"):
        gateway.remember("deploy steps", applies=applies)


@pytest.mark.parametrize("context", [{"planet": "x"}, {"directory": ""}, ["directory"]])
def test_an_unknown_fact_of_the_context_is_refused(gateway: Gateway, context: Any) -> None:
    """Given a fact that no condition can be about, when it is named in a search, then VALIDATION_FAILED."""
    with refused("VALIDATION_FAILED"):
        gateway.search("x", context=context)


def test_conditions_and_role_are_kept_shown_and_inherited(gateway: Gateway) -> None:
    """RM-30: given conditions and an institutional role, then they are shown as given; a correction has them too."""
    applies = conditions("all", IN_API, {"kind": "topic", "value": "Straße"})
    role = {
        "id": "pos-1", "role": "position", "owner": "ops", "source_refs": ["adr-7"], "boundary_conditions": [],
        "review": {"reviewed_at": "2026-05-01T00:00:00.000000Z", "expires_at": "2027-05-01T00:00:00.000000Z"},
    }  # fmt: skip
    made = gateway.remember("we deploy on Mondays", kind="decision", applies=applies, institutional=role)

    shown = gateway.show(made.revision_id or "")
    assert (shown.applies, shown.institutional) == (applies, role)
    assert shown.review_by == role["review"]["expires_at"]
    (hit,) = gateway.search("deploy, in which STRASSE?", context={"directory": "/srv/api"}).hits
    assert (hit.applies, hit.institutional) == (applies, role)
    corrected = gateway.show(gateway.correct(made.revision_id or "", "we deploy on Tuesdays").revision_id or "")
    assert (corrected.applies, corrected.institutional, corrected.review_by) == (applies, role, shown.review_by)
    with refused("VALIDATION_FAILED"):
        gateway.remember("x", institutional=role, review_by="2028-01-01T00:00:00Z")


def test_what_filters_leave_out_costs_no_slots(gateway: Gateway) -> None:
    """OH-24: given many nearer memories that each of the filters leaves out, then k is filled from behind them."""
    for n in range(12):
        gateway.remember("the bus runs", tags=[f"{n}"], applies=conditions("all", IN_API))
        gateway.remember("the bus runs", tags=[f"{n} too"], confidence="0.1")
    for n in range(3):
        gateway.remember(f"the bus runs on line {n}", confidence="0.9")

    found = gateway.search("the bus runs", k=3, min_confidence="0.5", why=True)

    assert [str(hit.content)[:-1] for hit in found.hits] == ["the bus runs on line "] * 3
    assert [hit.rank for hit in found.hits] == [1, 2, 3]
    assert len(found.excluded or ()) == 24


def test_nobody_is_told_of_what_he_may_not_see(gateway: Gateway) -> None:
    """AG-12: given a user's withdrawn note, when others ask why, it is not named; its user is told."""
    own = gateway.remember("the safe code", user="u", visibility="user")
    gateway.remember("the safe is green")
    gateway.search("safe", user="u")
    gateway.retire(own.revision_id or "")

    assert gateway.search("the safe code", why=True).excluded == ()
    assert gateway.search("the safe code").excluded is None


def test_a_budget_takes_whole_hits(gateway: Gateway) -> None:
    """LM-38: given texts of about 7 and 3 tokens, then a budget takes the best that fit, and says what it left."""
    gateway.remember("the tram runs at noon")  # 21 bytes: 7 tokens
    gateway.remember("the tram")  # 8 bytes: 3 tokens

    assert contents(gateway, "the tram", budget=10) == ["the tram", "the tram runs at noon"]
    found = gateway.search("the tram", budget=9)
    assert [hit.content for hit in found.hits] == ["the tram"]
    assert (found.warnings, found.empty_reason) == (("budget:1",), None)
    assert gateway.search("the tram", budget=2).empty_reason == "budget"
    for budget in (0, -1, True, "2"):
        with refused("VALIDATION_FAILED"):
            gateway.search("the tram", budget=budget)  # pyright: ignore[reportArgumentType] - what it must refuse


# ---------------------------------------------------------------- without an embedder


def test_without_an_embedder_words_are_compared(open_here: Here) -> None:
    """LM-02, OH-24: given no embedder, then what shares words is found, labelled, filtered and confirmed as ever."""
    gateway = open_here(embedder="none")
    gateway.remember("the Zanzibar ferry leaves at noon", tags=["sea"])
    gateway.remember("the bus to the ferry leaves at one")
    gone = gateway.remember("the Zanzibar ferry is cancelled")
    gateway.revoke(gone.revision_id or "", reason="a joke")
    gateway.remember("breakfast is at eight")

    found = gateway.search("ZANZIBAR ferry?")

    assert [hit.content for hit in found.hits] == [
        "the Zanzibar ferry leaves at noon",
        "the bus to the ferry leaves at one",
    ]
    assert found.warnings == ("full_text",)
    assert all(0 < hit.score <= 1 and hit.trust == "unverified" and "shared words" in hit.why for hit in found.hits)
    assert contents(gateway, "ferry", tags=["sea"]) == ["the Zanzibar ferry leaves at noon"]
    assert contents(gateway, "ferry", budget=1) == []


def test_an_embedder_that_fails_is_stood_in_for(open_here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an embedder that stops answering, then words are compared, and meaning again once it answers."""
    gateway = open_here()
    gateway.remember("the mill grinds rye")
    assert gateway.search("mill").warnings == ()

    def embed(self: object, texts: object) -> None:
        raise UnavailableError("EMBEDDER_UNAVAILABLE", "The model should answer, and it does not. Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(type(WORDS), "embed", embed)
        found = gateway.search("mill")
        assert [hit.content for hit in found.hits] == ["the mill grinds rye"]
        assert found.warnings == ("embedder_unavailable:no_answer", "full_text")
    assert gateway.search("mill").warnings == ()


def test_words_of_what_others_may_see_are_not_compared(open_here: Here) -> None:
    """AG-12, OH-35: given notes of other users and projects, then no word of theirs is found without an embedder."""
    gateway = open_here(embedder="none")
    gateway.remember("the safe code is here", user="u", visibility="user")
    gateway.remember("the safe code of all", visibility="tenant")
    open_here(embedder="none", project="borea").remember("the safe code of borea")

    assert contents(gateway, "safe code") == ["the safe code of all"]
    assert sorted(map(str, contents(gateway, "safe code", user="u"))) == [
        "the safe code is here",
        "the safe code of all",
    ]


# ---------------------------------------------------------------- why there is nothing


def test_nothing_is_near(open_here: Here) -> None:
    """LM-38 `no_match`: given memories of which this reader may see none, then nothing matches."""
    gateway = open_here()
    gateway.remember("the safe code", user="u", visibility="user")
    assert gateway.search("the safe code").empty_reason == "no_match"


@pytest.mark.parametrize("embedder", [None, "none"])
@pytest.mark.parametrize(
    "asked",
    [{"kinds": ["task"]}, {"tags": ["x"]}, {"min_trust": "verified"}, {"min_confidence": "0.1"}, {"context": {}}],
)
def test_all_that_is_near_is_filtered(open_here: Here, embedder: str | None, asked: dict[str, Any]) -> None:
    """LM-38 `filtered`: given one near memory that a filter leaves out, with and without an embedder."""
    gateway = open_here(embedder=embedder)
    gateway.remember("the mill grinds rye", applies=conditions("all", IN_API) if "context" in asked else None)
    assert gateway.search("mill", **asked).empty_reason == "filtered"


@pytest.mark.parametrize("embedder", [None, "none"])
def test_all_was_withdrawn(open_here: Here, embedder: str | None) -> None:
    """LM-38 `headless` and `nothing_indexed`: given nothing yet, and then only a memory that was retired."""
    gateway = open_here(embedder=embedder)
    assert gateway.search("mill").empty_reason == "nothing_indexed"
    made = gateway.remember("the mill grinds rye")
    gateway.retire(made.revision_id or "")
    assert gateway.search("mill").empty_reason == "headless"


def test_words_alone_do_not_find_it(open_here: Here) -> None:
    """LM-38 `no_embedder`: given a memory that shares no word with the query, and no embedder to compare meanings."""
    gateway = open_here(embedder="none")
    gateway.remember("the mill grinds rye")
    found = gateway.search("oats")
    assert (found.hits, found.empty_reason, found.warnings) == ((), "no_embedder", ("full_text",))


# ---------------------------------------------------------------- spelling of scopes


@pytest.mark.parametrize("other", ["OPS-BOT", "ops_bot", "ops bot", " ops-bot", "OpsBot"])
def test_another_spelling_is_another_scope_and_the_writer_is_warned(open_here: Here, other: str) -> None:
    """OH-34: given an agent's note, when it is spelled otherwise, then nothing is found, and a receipt says why."""
    gateway = open_here()
    known = "opsbot" if other == "OpsBot" else "ops-bot"
    first = gateway.remember("the key is blue", agent=known, visibility="agent")
    assert first.warnings == ()
    assert contents(gateway, "key", agent=other) == []

    second = gateway.remember("the key is green", agent=other, visibility="agent", idempotency_key="k")

    (warning,) = second.warnings
    assert warning.startswith("scope_spelling: another agent") and other not in warning
    assert (
        open_here().remember("the key is green", agent=other, visibility="agent", idempotency_key="k").warnings
        == second.warnings
    )
    assert contents(gateway, "key", agent=known) == ["the key is blue"]


def test_a_project_in_another_spelling_is_warned_of(open_here: Here) -> None:
    """OH-34: given a project, when another one is written to whose name differs in case only, then it is warned of."""
    open_here().remember("the key is blue")
    (warning,) = open_here(project="ATLAS").remember("the key is red").warnings
    assert warning.startswith("scope_spelling: another project")
    assert open_here(project="borea").remember("the key is red").warnings == ()
