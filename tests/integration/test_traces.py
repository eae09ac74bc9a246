"""What one command stored, found by the `trace_id` of its receipt."""

import pytest

from gateway.service import Gateway
from tests.house import refused, tamper
from tests.integration.conftest import Here
from tests.roles import as_owner

UNKNOWN = "op_01JZ8Q0000000000000000000Z"


def test_a_trace_is_all_that_its_command_stored(gateway: Gateway) -> None:
    """RC-01, RC-26: given commands of several events, when their traces are shown, then exactly their events come."""
    gateway.remember("a", memory_id="a")
    gateway.remember("b", memory_id="b")
    receipts = [gateway.correct("a", "c"), gateway.link("a", "b"), gateway.remember("d", agent="scout", session="s")]
    known = {item.trace_id for item in gateway.events()}
    for receipt in receipts:
        trace = gateway.show_trace(receipt.trace_id)
        assert [(item.seq, item.type) for item in trace.items] == [(one.seq, one.type) for one in receipt.events]
        assert trace.items == tuple(gateway.show_event(one.seq) for one in receipt.events)
        assert (trace.trace_id, trace.actor, trace.at) == (receipt.trace_id, "human:ana", trace.items[0].at)
        # Appends of one millisecond have ids that follow each other.
        alike = sorted(one for one in known if one.startswith(receipt.trace_id[:-2]))
        assert gateway.complete(receipt.trace_id[:-2]) == tuple(alike)
    opening = gateway.show_event(0)
    assert gateway.show_trace(opening.trace_id).items[0] == opening


@pytest.mark.parametrize("trace", [UNKNOWN, "rev_01JZ8Q0000000000000000000Z", "mem", "op_"])
def test_an_unknown_trace_is_not_found(gateway: Gateway, trace: str) -> None:
    """Given no such append, when it is shown, then TRACE_NOT_FOUND; that of a dry run is none either."""
    gateway.remember("a")
    with refused("TRACE_NOT_FOUND"):
        gateway.show_trace(trace)
    with refused("TRACE_NOT_FOUND"):
        gateway.show_trace(gateway.remember("b", dry_run=True).trace_id)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE corrigenda.log_entry l SET op = o.op FROM corrigenda.log_entry o"
        " WHERE o.seq = {other} AND l.seq = {own}",
        "UPDATE corrigenda.log_entry SET seq = seq + 1000",
        "UPDATE corrigenda.log_entry SET seq = -seq - 1000",
    ],
)
def test_an_edited_read_model_is_not_believed(open_here: Here, edit: str) -> None:
    """Given rows that name other appends, when one is shown, then its own events come, or it is not found."""
    gateway = open_here()
    own, other = gateway.remember("a"), gateway.remember("b")
    tamper(as_owner(open_here.ledger_url), (edit.format(own=own.events[0].seq, other=other.events[0].seq), ()))
    open_here.broken = True
    with refused("TRACE_NOT_FOUND"):
        gateway.show_trace(own.trace_id)
    if "FROM" in edit:
        assert gateway.show_trace(other.trace_id).items[0].seq == other.events[0].seq


def test_a_trace_tells_payloads_to_who_sees_them(open_here: Here) -> None:
    """Given a user's memory, when an agent shows its trace, then the facts come and the payload does not."""
    with open_here() as operator:
        receipt = operator.remember("secret", user="bo", visibility="user")
    (item,) = [one for one in open_here(actor="agent:x").show_trace(receipt.trace_id).items if "memory" in one.type]
    assert (item.payload, item.facts["visibility"]) == (None, "user")
