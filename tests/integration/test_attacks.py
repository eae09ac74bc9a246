"""What full SQL rights, a wrong key or a signal at the wrong moment can do: each is noticed, or has no effect."""

import json
import os
import signal
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

import corrigenda
from gateway import embedded
from gateway.service import Gateway
from gateway.upkeep.bare import open_bare
from ledger.errors import CorrigendaError
from ledger.flush import Flush
from tests.integration.conftest import Here
from tests.roles import as_owner


def run(url: str, statement: LiteralString, **params: object) -> None:
    """Do something to the tables as their owner, with nobody watching."""
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement, params)


def code_of(act) -> tuple[str, object]:
    """Return code and position of the error that an act ends with."""
    with pytest.raises(CorrigendaError) as caught:
        act()
    return caught.value.code, caught.value.details.get("position")


def test_an_interrupt_that_left_a_transaction_open_swallows_no_later_write(
    open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a signal just after BEGIN that the program survives, then what is acknowledged afterwards is committed."""
    gateway = open_here(embedder="none")
    gateway.remember("the office is in Berlin")
    real, raised = vars(psycopg.Connection)["execute"], []

    def interrupted(self: psycopg.Connection, query: object, *args: object, **named: object) -> object:
        done = real(self, query, *args, **named)
        if not raised and isinstance(query, bytes) and b"BEGIN" in query:
            raised.append(True)
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(psycopg.Connection, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gateway.search("office")
    _assert_writes_are_committed(open_here, gateway)


def test_an_interrupt_amid_a_round_trip_swallows_no_later_write(
    open_here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a signal when a read was sent and not answered, then what is acknowledged afterwards is committed."""
    gateway = open_here(embedder="none")
    first = gateway.remember("the office is in Berlin")
    real, raised = vars(Flush)["_push"], []

    def interrupted(self: Flush) -> None:
        real(self)
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt

    monkeypatch.setattr(Flush, "_push", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gateway.explain(first.revision_id or "")
    _assert_writes_are_committed(open_here, gateway)


def _assert_writes_are_committed(open_here: Here, gateway: Gateway) -> None:
    second = gateway.remember("the office is in Hamburg")
    with psycopg.connect(as_owner(open_here.ledger_url)) as other:
        found = other.execute("SELECT count(*) FROM corrigenda.event WHERE seq = %s", (second.position,)).fetchone()
    assert found == (1,)
    assert gateway.explain(second.revision_id or "").content == "the office is in Hamburg"


def test_a_head_that_was_set_back_serves_nothing_to_a_new_process(open_here: Here) -> None:
    """OH-45: given the head row set back to before a revocation, then a new process sees the rows above and refuses."""
    gateway = open_here()
    poisoned = gateway.remember("the moon is made of cheese")
    gateway.revoke(poisoned.revision_id or "", reason="poison")
    gateway.close()
    run(
        open_here.ledger_url,
        "UPDATE corrigenda.head SET (seq, hash) = (SELECT seq, hash FROM corrigenda.event WHERE seq = %(seq)s)",
        seq=poisoned.position,
    )
    open_here.broken = True
    assert code_of(open_here) == ("INTEGRITY_BROKEN", poisoned.position + 1)


def test_a_ledger_without_its_tenant_row_is_not_begun_anew(open_here: Here) -> None:
    """Given the tenant's row deleted, then the ledger is broken at 0, and no second one is made beside it."""
    open_here(embedder="none").remember("the office is in Berlin")
    open_here.close()
    run(open_here.ledger_url, "DELETE FROM corrigenda.tenant")
    open_here.broken = True
    assert code_of(open_here) == ("INTEGRITY_BROKEN", 0)
    with psycopg.connect(as_owner(open_here.ledger_url)) as connection:
        assert connection.execute("SELECT count(*) FROM corrigenda.head").fetchone() == (1,)


def test_a_request_column_that_was_emptied_gives_no_second_effect(open_here: Here) -> None:
    """RC-14: given the column of a used key set to NULL, then a retry is the replay still, and verify names the row."""
    gateway = open_here(embedder="none")
    first = gateway.remember("the office is in Berlin", idempotency_key="k")
    run(open_here.ledger_url, "UPDATE corrigenda.event SET request = NULL")
    again = gateway.remember("the office is in Berlin", idempotency_key="k")
    open_here.broken = True
    assert (again.replayed, again.position) == (True, first.position)
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        assert bare.verify().checks["chain"].first_bad_position == 1


def test_a_directory_that_points_nowhere_costs_names_and_nothing_else(open_here: Here) -> None:
    """Given every directory row at position −1, then a write is answered as stored, and reads show ids for names."""
    gateway = open_here(embedder="none")
    gateway.remember("the office is in Berlin", memory_id="office")
    gateway.close()
    run(open_here.ledger_url, "UPDATE corrigenda.directory SET seq = -1")
    open_here.broken = True
    gateway = open_here(embedder="none")
    fixed = gateway.correct("office", "the office is in Hamburg")
    assert fixed.outcome == "stored"
    assert fixed.revision_id is not None
    assert open_here(embedder="none").explain(fixed.revision_id).memory_id.startswith("mem_")


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE corrigenda.revision SET lineage = 'name_0'",
        "UPDATE corrigenda.revision SET lineage = 'mem_0', project = 'prj_0'",
        "UPDATE corrigenda.outbox SET lineage = 'name_0'",
    ],
)
def test_a_revocation_does_not_ask_a_read_model(open_here: Here, edit: LiteralString) -> None:
    """XC-08: given read model or outbox edited, then a revision is found by its id and stops being served."""
    gateway = open_here()
    poisoned = gateway.remember("the moon is made of cheese")
    gateway.close()
    run(open_here.ledger_url, edit)
    open_here.broken = True
    gateway = open_here()
    assert gateway.explain(poisoned.revision_id or "").content == "the moon is made of cheese"
    gateway.revoke(poisoned.revision_id or "", reason="poison")
    assert gateway.search("cheese moon").hits == ()


def test_an_edited_row_that_stands_in_the_way_is_named_as_a_read_model(open_here: Here) -> None:
    """Given a revoked revision's row edited back to active, then a new head is refused, and not as a broken chain."""
    gateway = open_here(embedder="none")
    poisoned = gateway.remember("the moon is made of cheese", memory_id="moon")
    gateway.revoke("moon", reason="poison")
    run(open_here.ledger_url, "UPDATE corrigenda.revision SET trust = 'unverified' WHERE revision = %(r)s",
        r=poisoned.revision_id)  # fmt: skip
    open_here.broken = True
    with pytest.raises(CorrigendaError) as caught:
        gateway.remember("the moon is made of rock", memory_id="moon")
    assert (caught.value.code, caught.value.exit_code) == ("INTEGRITY_BROKEN", 12)
    assert caught.value.details["check"] == "projections"


def test_a_head_row_of_another_incarnation_is_refused(open_here: Here) -> None:
    """Event 0 says which incarnation this is; a row that says another is not believed."""
    open_here(embedder="none").remember("the office is in Berlin")
    open_here.close()
    run(open_here.ledger_url, "UPDATE corrigenda.head SET incarnation = 7")
    open_here.broken = True
    assert code_of(open_here) == ("INTEGRITY_BROKEN", 0)


def test_another_naming_key_is_refused(open_here: Here) -> None:
    """Given a key file whose sealing half is right and whose naming half is not, then nothing is looked up with it."""
    open_here(embedder="none").remember("the office is in Berlin", memory_id="office")
    open_here.close()
    file = open_here.home / "keys" / "ledger.key"
    key = json.loads(file.read_text())
    file.write_text(json.dumps({**key, "naming": key["seal"]}))
    open_here.broken = True
    assert code_of(open_here)[0] == "LEDGER_UNVERIFIED"


def test_a_key_file_that_is_a_pipe_is_refused_at_once(open_here: Here) -> None:
    """A FIFO in the key's place would keep a reader waiting for ever."""
    open_here(embedder="none").close()
    file = open_here.home / "keys" / "ledger.key"
    file.unlink()
    os.mkfifo(file, 0o600)
    open_here.broken = True
    assert code_of(open_here)[0] == "LEDGER_UNVERIFIED"


def test_a_new_connection_is_asked_whether_it_keeps_what_it_acknowledges(open_here: Here) -> None:
    """Given durability taken away by a setting and the connection cut, then nothing is acknowledged on the next one."""
    gateway = open_here(embedder="none")
    gateway.remember("the office is in Berlin")
    with psycopg.connect(as_owner(open_here.ledger_url), autocommit=True) as owner:
        name = sql.Identifier(owner.info.dbname)
        owner.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(name))
        try:
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            with pytest.raises(CorrigendaError):  # the connection is found cut
                gateway.remember("the office is in Hamburg")
            with pytest.raises(CorrigendaError, match="synchronous_commit=off"):
                gateway.remember("the office is in Hamburg")
        finally:
            owner.execute(sql.SQL("ALTER DATABASE {} RESET synchronous_commit").format(name))
    assert gateway.remember("the office is in Hamburg").outcome == "stored"


def test_a_killed_embedded_server_is_started_again_by_whoever_uses_it_next(home: Path) -> None:
    """G1: given the postmaster killed under an open gateway, then what was acknowledged is there, and writes go on."""
    try:
        with corrigenda.open(home=home, project="atlas", actor="human:ana", embedder="none") as gateway:
            first = gateway.remember("the office is in Berlin", idempotency_key="k")
            with open_bare(home=home, create=False) as bare, psycopg.connect(bare.database_url()) as connection:
                postmaster = _parent_of(connection.info.backend_pid)
            os.kill(postmaster, signal.SIGKILL)
            again = _retried(gateway, "the office is in Berlin", "k")
            assert (again.replayed, again.position) == (True, first.position)
            assert _retried(gateway, "the office is in Hamburg", "l").outcome == "stored"
    finally:
        embedded.stop(home, remove=True)


def _parent_of(process: int) -> int:
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(fields["PPid"])


def _retried(gateway: Gateway, content: str, key: str) -> corrigenda.Receipt:
    """Repeat a write until the server is back: an attempt may find the connection cut, or about to be."""
    for _ in range(3):
        try:
            return gateway.remember(content, idempotency_key=key)
        except corrigenda.UnavailableError:
            continue
    raise AssertionError("the server did not come back")


@pytest.mark.parametrize("confidence", ["0_1", "٠.٥", " 0.5 ", "-0", "1.5", "0.1234567", "1e-1", ""])
def test_a_confidence_has_one_spelling(open_here: Here, confidence: str) -> None:
    """Only plain decimals from 0 to 1 are taken; what a lenient parser would make of others is not stored."""
    gateway = open_here(embedder="none")
    assert code_of(lambda: gateway.remember("text", confidence=confidence))[0] == "VALIDATION_FAILED"
