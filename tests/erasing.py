"""Shared hands: an erasure as its command will make it one day, step by step, so that a test can leave one out."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from gateway.service import Gateway
from ledger import erasure, keys, notes
from ledger.clock import new_ulid
from ledger.erasure import ERASURE, CertifyErasure, ErasureCertified, NotReached, Swept
from ledger.memories import LineageState, PayloadErased
from ledger.message import HEADLESS, Event, Move, Values
from tests.integration.planting import plant
from tests.roles import as_owner

DELETE = "DELETE FROM corrigenda.payload WHERE seq = ANY(%s)"


def committed(gateway: Gateway, memory: str) -> list[int]:
    """Return the positions of a memory's events that have a payload."""
    ledger: Any = gateway._ledger  # Any: what no act of the gateway does
    stream = ledger.stream(gateway._references.lineage(memory))
    return [one.entry.position for one in stream if one.entry.envelope.payload_sha256 is not None]


def say_erased(gateway: Gateway, memory: str, named: str, positions: Sequence[int]) -> None:
    """Store the event that says which payloads are destroyed; every revision of the memory ends as erased."""

    def make(state: LineageState, position: int) -> Event:
        moves = tuple(
            Move(
                after=Values("erased", one.values.trust, one.values.floor),
                before=one.values,
                revision=one.revision,
                since=one.since,
                version=one.version,
            )
            for one in state.revisions.values()
        )
        facts = PayloadErased(erasure=named, moves=moves, positions=tuple(positions), standing=HEADLESS)
        return Event(facts=facts, payload=None, position=position)

    plant(gateway, memory, make)


def certificate(origin: str, named: str, payloads: int, signing: Path) -> ErasureCertified:
    """Return the certificate of an erasure, signed with the key in a file."""
    facts = ErasureCertified(
        by="memory",
        not_reached=(NotReached(store="backup", until="2027-01-01T00:00:00.000000Z"),),
        payloads=payloads,
        signature="",
        stores=(Swept(deleted=payloads, residual=0, store="payload"),),
    )
    note = notes.sign(erasure.statement(origin, named, facts), origin, keys.read_signing_key(signing))
    raw = note.signatures[0].key_id + note.signatures[0].signature
    return msgspec.structs.replace(facts, signature=base64.b64encode(raw).decode())


def certify(gateway: Gateway, named: str, facts: ErasureCertified) -> None:
    """Store a certificate in its erasure's own stream."""
    writer: Any = gateway._writer  # Any: as above
    with writer.hold() as (held, page):
        append = page.begin(actor="human:ana")
        append.decide_on(ERASURE, named, CertifyErasure(facts=facts, reason="she asked for it"))
        held.store([page.close(append)])


def delete(url: str, positions: Sequence[int]) -> None:
    """Take payloads away, as the tables' owner can, past every trigger."""
    with psycopg.connect(as_owner(url)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(DELETE, [list(positions)])


def erase_payloads(gateway: Gateway, positions: Sequence[int], url: str, home: Path) -> None:
    """Erase what some events say, with a certificate: the event that says so goes with a memory's that is erased."""
    gateway.remember("what the erasure goes with", memory_id="carrier")
    named = f"era_{new_ulid()}"
    say_erased(gateway, "carrier", named, positions)
    delete(url, positions)
    certify(
        gateway, named, certificate(str(gateway._ledger.origin), named, len(positions), home / "keys" / "signing.pem")
    )


def erase(gateway: Gateway, memory: str, url: str, home: Path, *, certified: bool = True) -> list[int]:
    """Erase a whole memory: the event, the payloads, the certificate. Return the positions."""
    named, positions = f"era_{new_ulid()}", committed(gateway, memory)
    say_erased(gateway, memory, named, positions)
    delete(url, positions)
    if certified:
        origin = str(gateway._ledger.origin)
        certify(gateway, named, certificate(origin, named, len(positions), home / "keys" / "signing.pem"))
    return positions
