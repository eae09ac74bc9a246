"""The oracle itself: a house out of order in any one place does not pass for one in order."""

from typing import Any

import pytest

from gateway.service import Gateway
from tests.house import WORDS, assert_house_in_order, tamper
from tests.integration.conftest import Here

DISORDER = {
    "a row's state": "UPDATE corrigenda.revision SET state = 'retired' WHERE state = 'active'",
    "a row's content": "UPDATE corrigenda.revision SET content_seq = content_seq + 1",
    "a lost row": "DELETE FROM corrigenda.revision WHERE state = 'superseded'",
    "a lost name": "DELETE FROM corrigenda.directory WHERE id LIKE 'pr\\_%%'",
    "a lost effect": "DELETE FROM corrigenda.outbox WHERE effect = 'remove'",
    "a changed effect": "UPDATE corrigenda.outbox SET effect = 'remove' WHERE effect = 'put'",
    "a seal": "UPDATE corrigenda.event SET seal = set_byte(seal, 9, 255 - get_byte(seal, 9)) WHERE seq = 2",
}


@pytest.mark.parametrize("what", DISORDER)
def test_the_oracle_sees_disorder_in_the_tables(gateway: Gateway, open_here: Here, what: str) -> None:
    """XC-02: given a house in order, when one thing in one table is changed, then the oracle fails."""
    gateway.remember("a", memory_id="m")
    gateway.correct("m", "b")
    gateway.close()
    assert_house_in_order(open_here.ledger_url, open_here.home)
    open_here.broken = True

    tamper(open_here.ledger_url, (DISORDER[what], []))

    with pytest.raises(AssertionError):
        assert_house_in_order(open_here.ledger_url, open_here.home)


def test_the_oracle_sees_disorder_in_the_index(gateway: Gateway, open_here: Here) -> None:
    """XC-02: given a generation that holds an item of no head, when the house is looked at, then the oracle fails."""
    gateway.remember("a", memory_id="m")
    gateway.search("a")
    index: Any = gateway._relay.replica  # Any: planting in the replica what no event put there
    index.put(next(iter(index.items().values())), "mem_X/rev_X", WORDS.embed(["b"])[0])
    gateway.index.frozen = True  # else what is wrong would be mended at the end
    gateway.close()
    open_here.broken = True

    with pytest.raises(AssertionError):
        assert_house_in_order(open_here.ledger_url, open_here.home)
