"""Somebody with full SQL rights rewrites what was written: the next read or append is refused, and `verify` says where.

Each attack is met by a process that starts after it, and by one that was there all the time: neither may serve or
write. What `verify` itself makes of such ledgers is in test_verify_anchor.py and test_verify_forgery.py.
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import psycopg
import pytest

from gateway.service import Gateway
from gateway.settings import read_settings
from gateway.upkeep.bare import open_bare
from ledger import codec
from ledger.chain import Envelope
from ledger.errors import CorrigendaError, IntegrityError
from ledger.opening import attach, find_ledger
from ledger.store import Database
from tests.conftest import fresh_database
from tests.forging import appended, cut, rechain
from tests.integration.conftest import Here
from tests.roles import as_owner, as_writer
from tests.tampering import Tampering

Attack = Callable[[Tampering], object]


@pytest.fixture
def ledger_url(server_url: str, migrated_template: str) -> Iterator[str]:
    """Return a database of the test's own: what is done to its tables here cannot be undone for the next test."""
    with fresh_database(server_url, template=migrated_template) as url:
        yield as_writer(url)


@pytest.fixture
def tampering(open_here: Here) -> Iterator[Tampering]:
    """Return the owner's hands, with every key but not the anchor, on a ledger with three memories."""
    with open_here(embedder="none") as gateway:
        gateway.remember("the office is in Berlin", memory_id="office")
        gateway.remember("deploys are on Tuesdays", memory_id="deploys")
        gateway.correct("office", "the office is in Hamburg")
        gateway.remember("the moon is made of cheese", memory_id="moon")
        gateway.correct("deploys", "deploys are on Wednesdays")
    open_here.broken = True
    with closing(Database(open_here.ledger_url)) as database:
        found = find_ledger(database, "local")
        files = read_settings(database_url=open_here.ledger_url, home=open_here.home).keys
        ledger = attach(database, ledger=found or "", tenant="local", files=files)
        yield Tampering(ledger, open_here.ledger_url)
        ledger.close()


def appends(tampering: Tampering) -> list[Envelope]:
    """Return the first event of each append."""
    found = [codec.decode_envelope(one.envelope) for one in tampering.store.after(-1, 1_000)]
    return [envelope for envelope in found if envelope.op_index == 0]


def rewrite_a_correction(tampering: Tampering) -> None:
    """Change one event in the middle, and make every link and seal after it again."""
    position = next(one.seq for one in appends(tampering) if one.type == "revision.corrected.v1")
    rechain(tampering, position, lambda envelope: msgspec.structs.replace(envelope, authn="token"))


def rewrite_the_last_event(tampering: Tampering) -> None:
    """Change what nothing links to yet."""
    at = len(tampering.store.after(-1, 1_000)) - 1
    rechain(tampering, at, lambda envelope: msgspec.structs.replace(envelope, authn="token"))


def cut_appends(count: int) -> Attack:
    """Return the attack that cuts so many appends off and sets the head row back to fit."""
    return lambda tampering: cut(tampering, appends(tampering)[-count].seq)


def cut_and_go_on(tampering: Tampering) -> None:
    """Cut the last append, and write others in its place with the key, to a greater length."""
    cut_appends(1)(tampering)
    for _ in range(4):
        appended(tampering, 2)


def put_back_an_old_backup(tampering: Tampering) -> None:
    """Put every table back to what it was two appends ago, read models included."""
    size = appends(tampering)[-2].seq
    with psycopg.connect(as_owner(tampering.url)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM corrigenda.revision WHERE content_seq >= %s", [size])
        connection.execute("DELETE FROM corrigenda.directory WHERE seq >= %s", [size])
        connection.execute("DELETE FROM corrigenda.outbox WHERE seq >= %s", [size])
    cut(tampering, size)


def met(act: Callable[[], object]) -> IntegrityError:
    """Return the error of the ledger that an act ends with."""
    with pytest.raises(CorrigendaError) as caught:
        act()
    assert isinstance(caught.value, IntegrityError), caught.value
    return caught.value


def report_of(here: Here) -> dict[str, object]:
    """Return where the anchor's check fails, and the exit."""
    with open_bare(database_url=here.ledger_url, home=here.home, create=False) as bare:
        report = bare.verify()
    return {"exit": report.exit_code, "anchor": report.checks["anchor"].first_bad_position}


def size_of(tampering: Tampering) -> int:
    """Return how many events there are."""
    return len(tampering.store.after(-1, 1_000))


SHORTER: dict[str, Attack] = {
    "the last append cut": cut_appends(1),
    "three appends cut": cut_appends(3),
    "an old backup put back": put_back_an_old_backup,
}
OTHER: dict[str, Attack] = {
    "a full re-chain": rewrite_a_correction,
    "the last event rewritten": rewrite_the_last_event,
    "cut, then appended": cut_and_go_on,
}
FORGED: dict[str, Attack] = {
    "unsealed": lambda tampering: appended(tampering, 2, seal=b""),
    "sealed as another": lambda tampering: appended(tampering, 2, seal=tampering.store.at([2])[0].seal),
}


READS: dict[str, Callable[[Gateway], object]] = {
    "search": lambda gateway: gateway.search("office"),
    "explain": lambda gateway: gateway.explain("office"),
    "correct": lambda gateway: gateway.correct("deploys", "deploys are on Fridays"),
}


@pytest.mark.parametrize("attack", [*SHORTER, *OTHER, *FORGED])
@pytest.mark.parametrize("seen_before", [True, False], ids=["a process that was there", "a new process"])
def test_nothing_is_written_onto_a_history_that_was_rewritten(
    open_here: Here, tampering: Tampering, attack: str, seen_before: bool
) -> None:
    """Given the attack, then an append is refused as a broken ledger, again and again, and nothing was added."""
    gateway = open_here(embedder="none") if seen_before else None
    (SHORTER | OTHER | FORGED)[attack](tampering)
    size = size_of(tampering)
    for _ in range(3):
        error = met(lambda: (gateway or open_here(embedder="none")).remember("the sea is blue"))
        assert error.exit_code == 11 or attack not in SHORTER
    assert size_of(tampering) == size
    assert report_of(open_here)["exit"] == (10 if attack in FORGED else 11)


@pytest.mark.parametrize("attack", SHORTER)
@pytest.mark.parametrize("seen_before", [True, False], ids=["a process that was there", "a new process"])
@pytest.mark.parametrize("act", READS)
def test_nothing_is_served_of_a_ledger_that_was_shortened(
    open_here: Here, tampering: Tampering, attack: str, seen_before: bool, act: str
) -> None:
    """Given a loss, then no read and no decision is answered as if it had not happened."""
    gateway = open_here(embedder="none") if seen_before else None
    SHORTER[attack](tampering)
    met(lambda: READS[act](gateway or open_here(embedder="none")))
    assert report_of(open_here) == {"exit": 11, "anchor": size_of(tampering)}


def test_a_head_cut(open_here: Here, tampering: Tampering) -> None:
    """Given the first events removed, then nothing opens: event 0 is what everything rests on."""
    tampering.run("DELETE FROM corrigenda.event WHERE ledger = %(ledger)s AND seq < 2")
    assert met(lambda: open_here(embedder="none")).details["position"] == 0
    assert report_of(open_here) == {"exit": 10, "anchor": 0}


def test_a_swapped_pair(open_here: Here, tampering: Tampering) -> None:
    """Given two events that changed places, then whoever reads one of them is refused."""
    first, second = _remembered(open_here)
    tampering.run(
        "UPDATE corrigenda.event SET seq = 1000 + seq WHERE ledger = %(ledger)s AND seq IN (%(a)s, %(b)s)",
        "UPDATE corrigenda.event SET seq = %(a)s + %(b)s - (seq - 1000) WHERE ledger = %(ledger)s AND seq > 999",
        a=first,
        b=second,
    )
    error = met(lambda: open_here(embedder="none").explain("moon"))
    assert error.details["position"] in (first, second)
    assert report_of(open_here) == {"exit": 10, "anchor": first}


def test_a_relabelled_column(open_here: Here, tampering: Tampering) -> None:
    """Given an event filed under another stream, then whoever reads its own is refused."""
    position = _remembered(open_here)[1]
    tampering.run(
        "UPDATE corrigenda.event SET stream = %(other)s WHERE ledger = %(ledger)s AND seq = %(at)s",
        at=position,
        other="mem_01JZ8Q0000000000000000000Z",
    )
    error = met(lambda: open_here(embedder="none").correct("moon", "the moon is made of rock"))
    assert error.exit_code == 10
    assert report_of(open_here) == {"exit": 10, "anchor": None}


def _remembered(here: Here) -> tuple[int, int]:
    """Return where the first and the last memory were remembered."""
    with open_bare(database_url=here.ledger_url, home=here.home, create=False) as bare:
        found = [item.seq for item in bare.log(type="memory.remembered.v1", reverse=True)]
    return found[0], found[-1]
