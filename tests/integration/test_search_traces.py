"""Traces of retrievals: what one saw, chose and left out, whose it is, and what becomes of one that is not stored."""

from gateway.service import Gateway


def test_a_trace_holds_what_a_search_chose_and_left_out(gateway: Gateway) -> None:
    """Given a hit, one of another kind and one that was cut off, when the trace is shown, then all are told, and why."""
    chosen = gateway.remember("the user lives in Berlin", memory_id="home")
    other = gateway.remember("the user lives on rice", kind="preference")
    found = gateway.search("where the user lives", k=1, kinds=("fact",), session="s", turn=3, run="r1")
    trace = gateway.search_trace(found.trace_id or "")
    assert [(hit.rank, hit.memory_id, hit.revision_id, hit.score) for hit in trace.hits] == [
        (1, "home", chosen.revision_id, found.hits[0].score)
    ]
    assert [(one.revision_id, one.reason) for one in trace.excluded] == [(other.revision_id, "its kind is preference")]
    assert (trace.kind, trace.actor, trace.project, trace.query) == (
        "search", "human:ana", "atlas", "where the user lives",
    )  # fmt: skip
    assert (trace.session, trace.turn, trace.run, trace.k, trace.filters) == ("s", 3, "r1", 1, {"kinds": ["fact"]})
    assert (trace.position, trace.embedder, trace.withheld) == (found.position, "provider=test;model=words", 0)
