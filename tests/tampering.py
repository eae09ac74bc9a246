"""Shared hands: the database's owner, who may change anything that is stored."""

from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from ledger.anchor import Anchor
from ledger.digest import LedgerKeys
from ledger.errors import IntegrityError
from ledger.memories import Retire, Revoke
from ledger.verified import VerifiedLedger
from ledger.verify import Report
from tests.ledgers import WrittenLedger, correct, remember
from tests.roles import as_owner
from tests.sharing import verify

FIRST, SECOND = "mem_01JZ8Q0000000000000000000D", "mem_01JZ8Q0000000000000000000E"


def write_nine(ledger: WrittenLedger) -> None:
    """Write what the tests tamper with.

    0 opened · 1, 2 FIRST named and remembered · 3 SECOND remembered · 4 FIRST corrected · 5, 6 SECOND corrected and
    retired in one append · 7 FIRST's first revision revoked · 8 FIRST corrected again.
    """
    ledger.append(FIRST, remember("rev_1", "Deploys are on Tuesdays.", first=-2), name="deploys")
    ledger.append(SECOND, remember("rev_a", "The office closes at six."))
    ledger.append(FIRST, correct("rev_1", "rev_2", "Deploys are on Wednesdays."))
    ledger.append(SECOND, correct("rev_a", "rev_b", "It closes at seven."), Retire(first=-2, revision="rev_b"))
    ledger.append(FIRST, Revoke(revision="rev_1", reason="never true"))
    ledger.append(FIRST, correct("rev_2", "rev_3", "Deploys are on Thursdays."))


class Tampering:
    """The owner's hands on the tables, and two readers that meet the ledger afterwards for the first time."""

    def __init__(self, ledger: VerifiedLedger, url: str) -> None:
        self.store = ledger.store
        self.keys = ledger.keys
        self.origin = ledger.origin
        self.url = url

    def run(self, *statements: LiteralString | sql.Composed, **params: Any) -> None:  # Any: whatever the driver adapts
        """Run statements as the owner, with triggers disabled."""
        with psycopg.connect(as_owner(self.url)) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(statement, {"ledger": self.store.ledger, **params})

    def flip(self, table: str, column: str, seq: int, *, byte: int = 20) -> None:
        """Change one byte of a column at a position."""
        changing = sql.SQL(
            "UPDATE corrigenda.{table} SET {column} = set_byte({column}, %(byte)s, get_byte({column}, %(byte)s) # 1) "
            "WHERE ledger = %(ledger)s AND seq = %(seq)s"
        )
        named = changing.format(table=sql.Identifier(table), column=sql.Identifier(column))
        self.run(named, seq=seq, byte=byte)

    def report(self, keys: LedgerKeys | None = None, *, first: int = 0, last: int | None = None) -> Report:
        """Verify with the ledger's own key, or another; alone and with a helper."""
        return verify(self.store, keys or self.keys, first=first, last=last)

    def walk(self) -> int:
        """Follow the ledger as a new process does."""
        anchor = Anchor.in_memory(ledger=self.store.ledger, origin=self.origin)
        ledger = VerifiedLedger(self.store, self.keys, self.origin, anchor)
        try:
            return ledger.catch_up()
        finally:
            ledger.close()


def failed(report: Report) -> dict[str, int | None]:
    """Return the checks that failed, with their first bad positions; exits and `ok` must agree with them."""
    found = {name: check.first_bad_position for name, check in report.checks.items() if check.status == "failed"}
    assert (report.ok, report.exit_code) == ((True, 0) if not found else (False, 10))
    return found


def refused(tampering: Tampering) -> tuple[int, str]:
    """Return where, and at which check, a new process stops."""
    with pytest.raises(IntegrityError) as caught:
        tampering.walk()
    assert (caught.value.code, caught.value.exit_code) == ("INTEGRITY_BROKEN", 10)
    return caught.value.details["position"], caught.value.details["check"]
