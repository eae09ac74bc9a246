"""What ledgers a database holds, each held against the key and its tenant's row: looked at before another is made.

One key file seals them all, and each has an origin of its own: so a ledger whose row was taken away or renamed is found
before somebody begins anew in its place. Nobody who only opens a ledger is told anything from here but that a row is
gone. It must never make or change anything.
"""

from collections.abc import Iterator
from typing import NamedTuple

import psycopg

from ledger import codec, keys
from ledger.chain import Entry, broken
from ledger.errors import failure
from ledger.governance import LedgerName, LedgerOpened
from ledger.keys import KeyFiles
from ledger.store import QUERIES, Database, Row


class Opening(NamedTuple):
    """A tenant's row, and event 0 of the ledger that it names, as they lie there."""

    tenant: str
    ledger: str
    envelope: bytes | None
    seal: bytes | None
    salt: bytes | None
    body: bytes | None


def check_rows(connection: psycopg.Connection[Row]) -> bool:
    """Report whether there is any ledger; one that no tenant's row leads to is INTEGRITY_BROKEN."""
    row = connection.execute(QUERIES["any_ledger"]).fetchone()
    named, unnamed = (False, False) if row is None else row
    if unnamed:
        raise broken(0, "chain", "a tenant's row for the ledger that is there", "none")
    return bool(named)


def holds_ledger(database: Database) -> bool:
    """Report whether the database holds a ledger, whoever's; one without its tenant's row is INTEGRITY_BROKEN."""
    with database.transaction() as connection:
        return check_rows(connection)


def survey(connection: psycopg.Connection[Row], files: KeyFiles) -> frozenset[str]:
    """Return the origins of the ledgers that are there, after each was held against the key and its tenant's row.

    Only the tables' owner is shown other tenants' ledgers. Errors: FORBIDDEN_ACTOR (there are ledgers, and the role is
    another), LEDGER_UNVERIFIED (there are ledgers, and a key file is missing, cannot be used or is not theirs),
    INTEGRITY_BROKEN (an event 0, or a tenant's row, is not what was written).
    """
    if not check_rows(connection):
        return frozenset()
    return frozenset(_origins(_openings(connection), files))


def _openings(connection: psycopg.Connection[Row]) -> list[Opening]:
    try:
        return [Opening(*row) for row in connection.execute(QUERIES["read_openings"])]
    except psycopg.errors.InsufficientPrivilege as error:
        role = connection.info.user
        raise failure(
            "FORBIDDEN_ACTOR",
            "A further tenant's ledger is made by the tables' owner, who sees what others there are, and the database "
            f"role {role} is not the owner; nothing was made. Give the owner's URL for this one command "
            "(--database-url).",
            role=role,
        ) from error


def _origins(found: list[Opening], files: KeyFiles) -> Iterator[str]:
    secrets = keys.read_ledger_key(files.ledger)
    keys.read_signing_key(files.signing)
    for opening in found:
        if opening.envelope is None:
            raise broken(0, "chain", "the opening of the ledger", "nothing")
        entry = codec.read_entry(bytes(opening.envelope), bytes(opening.seal or b""), position=0)
        if not secrets.for_ledger(opening.ledger).is_sealed(entry.hash, entry.seal):
            raise failure(
                "LEDGER_UNVERIFIED",
                f"The ledger key at {files.ledger} should be the one of this database, and a ledger that is there does "
                "not carry its seal, so no other is made beside it. Give the key that was made with this database "
                "(CORRIGENDA_LEDGER_KEY_FILE), or use another database.",
                file=str(files.ledger),
            )
        yield _opened(entry, opening).origin


def _opened(entry: Entry, opening: Opening) -> LedgerOpened:
    salt, body = (None if part is None else bytes(part) for part in (opening.salt, opening.body))
    facts, named = entry.envelope.facts, codec.read_payload(entry, salt, body)
    if not isinstance(facts, LedgerOpened) or not isinstance(named, LedgerName) or named.tenant != opening.tenant:
        raise broken(0, "payloads", "the tenant whose row names this ledger", "another")
    return facts
