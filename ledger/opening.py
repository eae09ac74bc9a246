"""First use and every later one: finds the tenant's ledger, or makes it in one transaction with its keys and event 0.

Opening makes the ledger of the tenant `local` and no other; further ones are made by name. A database that holds a
ledger while its key file is missing makes nothing: a new key could never check what is there.
"""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg

from ledger import census, codec, digest, governance, keys, notes
from ledger.anchor import Anchor, Unusable
from ledger.appending import PROJECTOR_VERSION
from ledger.chain import Entry, Envelope, broken
from ledger.clock import Clock, UlidMint, stamp
from ledger.digest import LedgerKeys
from ledger.errors import CorrigendaError, IntegrityError, failure, refuse
from ledger.governance import Algorithms, AssignedName, LedgerName, LedgerOpened, NameAssigned
from ledger.keys import KeyFiles
from ledger.store import QUERIES, Database, Row, Store, Stored
from ledger.verified import VerifiedLedger
from ledger.walk import ANCHOR_MISMATCH, unfit_file

TENANT = "local"
FIRST_NAME = 1  # the first command of a ledger names its actor


def open_ledger(
    database: Database,
    *,
    tenant: str,
    files: KeyFiles,
    clock: Clock,
    anchors: Path | None = None,
    create: bool = True,
) -> VerifiedLedger:
    """Return the tenant's ledger; that of `local` is made first in a database without any, if `create` allows it.

    `anchors` is the folder of the ledger's anchor; without one, what is verified is held in memory only.

    Errors: NOT_CONFIGURED (no such tenant), LEDGER_UNVERIFIED (no key, or a foreign one), INTEGRITY_BROKEN (event 0 or
    the tenant's row is not what was written, or a ledger that the anchor knows is gone).
    """
    if create:
        keys.sweep(files)
    kept = kept_anchor(anchors)  # before the database is read: an anchor comes after its ledger's first commit
    found, trust = find_ledger(database, tenant), "first_use"
    if found is None and create and tenant == TENANT:
        if not census.holds_ledger(database):
            check_not_lost(kept)
            return init_ledger(database, tenant=tenant, files=files, clock=clock, anchors=anchors)
        found, trust = find_ledger(database, tenant), "opening"  # another process may just have made it
    if found is None:
        raise missing(database, tenant, kept)
    return attach(database, ledger=found, tenant=tenant, files=files, anchors=anchors, trust=trust)


def init_ledger(
    database: Database,
    *,
    tenant: str,
    files: KeyFiles,
    clock: Clock,
    anchors: Path | None = None,
    origin: str | None = None,
) -> VerifiedLedger:
    """Return the tenant's ledger, made first if there is none: with its own event 0, chain, origin and derived keys.

    The key files are made if the database holds no ledger at all, and needed if it does. Errors: LEDGER_UNVERIFIED (no
    key, or a foreign one), INVALID_INPUT (another origin than event 0's, or the origin of another ledger),
    INTEGRITY_BROKEN (an event 0 or a tenant's row is not what was written).
    """
    keys.sweep(files)
    kept = kept_anchor(anchors)
    found, trust = find_ledger(database, tenant), "first_use"
    if found is None:
        if not census.holds_ledger(database):
            check_not_lost(kept)
        found, trust = _first_use(database, tenant, files, clock, origin), "opening"
    return attach(database, ledger=found, tenant=tenant, files=files, origin=origin, anchors=anchors, trust=trust)


def find_ledger(database: Database, tenant: str) -> str | None:
    """Return the id of the tenant's ledger, or None if there is none: the same whatever other tenants there are."""
    with database.transaction(tenant=tenant) as connection:
        row = connection.execute(QUERIES["find_tenant"], {"tenant": tenant}).fetchone()
        if row is None:
            census.check_rows(connection)
    return None if row is None else str(row[0])


def kept_anchor(folder: Path | None) -> Path | None:
    """Return an anchor that lies in the folder of anchors, whichever ledger's; None if there is none."""
    return None if folder is None else min(folder.glob("*.sqlite"), default=None)


def check_not_lost(kept: Path | None) -> None:
    """Refuse with INTEGRITY_BROKEN (exit 11) that there is no ledger anywhere, where an anchor was kept of one."""
    if kept is not None:
        raise failure(
            "INTEGRITY_BROKEN",
            f"An anchor was kept of a ledger ({kept}), and the database holds no ledger at all: it was lost or "
            "emptied, or this is another database. Nothing was made. Put the data back from a backup, or check the "
            "URL. If a new ledger is meant, use another home (CORRIGENDA_HOME), or move the anchor away first.",
            check="anchor",
            expected="the ledger that the anchor was kept of",
            found="none",
            file=str(kept),
            exit_code=ANCHOR_MISMATCH,
        )


def missing(database: Database, tenant: str, kept: Path | None) -> CorrigendaError:
    """Return what it means that a tenant has no ledger; a database that has lost all of them is refused as that."""
    if kept is not None and not census.holds_ledger(database):
        check_not_lost(kept)
    return not_configured(tenant)


def not_configured(tenant: str) -> CorrigendaError:
    """Return NOT_CONFIGURED in words that say how a tenant is made, and nothing about others."""
    made = "`corrigenda db init`" if tenant == TENANT else f"`corrigenda db init --tenant {shlex.quote(tenant)}`"
    return failure(
        "NOT_CONFIGURED",
        f"There is no ledger for the tenant {tenant} here. Check --tenant and CORRIGENDA_TENANT (unset, the tenant is "
        f"{TENANT}), or run {made} to make one.",
    )


def attach(
    database: Database,
    *,
    ledger: str,
    tenant: str,
    files: KeyFiles,
    origin: str | None = None,
    anchors: Path | None = None,
    trust: str = "first_use",
) -> VerifiedLedger:
    """Return a ledger that exists, after its event 0 has been checked against the key and the tenant's name.

    `trust` is how trust in its anchor begins, if there is none in the folder `anchors` yet.
    """
    derived = keys.read_ledger_key(files.ledger).for_ledger(ledger)
    store = Store(database, ledger)
    first = _read_first(store)
    if not derived.is_sealed(first.hash, first.seal):
        raise failure(
            "LEDGER_UNVERIFIED",
            f"The ledger key at {files.ledger} belongs to another ledger: event 0 does not carry its seal. Nothing can "
            "be checked or written with it. Give the key that was made with this ledger (CORRIGENDA_LEDGER_KEY_FILE).",
            file=str(files.ledger),
        )
    opened = first.envelope.facts
    if not isinstance(opened, LedgerOpened) or opened.origin != first.envelope.log:
        raise broken(0, "chain", "the opening of a ledger", "another event")
    if origin is not None and origin != opened.origin:
        refuse(
            "INVALID_INPUT",
            f"The ledger was opened with the origin {opened.origin}, and {origin} was asked for. An origin is for "
            "life: leave it out, or use another database.",
            origin=opened.origin,
        )
    _check_tenant(store, first, tenant)
    _check_naming(store, derived, files)
    if store.head().incarnation != opened.incarnation:
        raise broken(0, "chain", f"a head row of incarnation {opened.incarnation}", "one of another")
    return VerifiedLedger(store, derived, opened.origin, _anchor(anchors, ledger, opened.origin, trust))


def _anchor(folder: Path | None, ledger: str, origin: str, trust: str) -> Anchor:
    if folder is None:
        return Anchor.in_memory(ledger=ledger, origin=origin)
    path = anchor_path(folder, ledger)
    try:
        anchor = Anchor.open(path, ledger=ledger, origin=origin, trust=trust)
        if trust == "opening" and anchor.state().trust == "first_use":
            anchor.trust(trust)  # of a ledger that has just been made: another process came between it and its anchor
        return anchor
    except Unusable as fault:
        raise unfit_file(path, fault) from fault


def anchor_path(folder: Path, ledger: str) -> Path:
    """Return where a ledger's anchor lies in the folder of anchors."""
    return folder / f"{ledger}.sqlite"


def _check_tenant(store: Store, first: Entry, tenant: str) -> None:
    stored = store.at([0])[0]
    named = codec.read_payload(first, stored.salt, stored.body)
    if not isinstance(named, LedgerName) or named.tenant != tenant:
        raise broken(0, "payloads", "the tenant whose row names this ledger", "another")


def _check_naming(store: Store, derived: LedgerKeys, files: KeyFiles) -> None:
    """Check the key's other half, the one that names: the first name's stream must be the digest of its name."""
    stream, digested = _first_name(store, derived)
    if stream != digested:
        refuse(
            "LEDGER_UNVERIFIED",
            f"The naming key at {files.ledger} is not the one that this ledger's names were made with, so nothing "
            "would be found with it. Give the key file that was made with this ledger (CORRIGENDA_LEDGER_KEY_FILE).",
            file=str(files.ledger),
        )


def _first_name(store: Store, derived: LedgerKeys) -> tuple[str, str]:
    """Return the stream of the first name and what it should be; equal where there is none that can be read."""
    for stored in store.at([FIRST_NAME]):
        with suppress(IntegrityError):  # what is broken is for the walk and for `verify` to say
            entry = codec.read_entry(stored.envelope, stored.seal, position=stored.seq)
            named = codec.read_payload(entry, stored.salt, stored.body)
            facts = entry.envelope.facts
            if isinstance(facts, NameAssigned) and isinstance(named, AssignedName):
                return entry.envelope.stream, derived.name(facts.kind, facts.parent, named.name)
    return "", ""


def _read_first(store: Store) -> Entry:
    found: list[Stored] = store.at([0])
    if not found:
        raise broken(0, "chain", "the opening of the ledger", "nothing")
    return codec.read_entry(found[0].envelope, found[0].seal, position=0)


def _first_use(database: Database, tenant: str, files: KeyFiles, clock: Clock, origin: str | None) -> str:
    """Make the ledger, unless another process has meanwhile: the advisory lock decides, the loser reads the row."""
    if origin is not None and not notes.is_name(origin):
        refuse(
            "INVALID_INPUT",
            "An origin is the name under which checkpoints are signed: one word without spaces, `+` and control "
            "characters was expected, such as ledger.example.org/main, and another text was given.",
        )
    database.check_durability()
    with database.transaction(tenant=tenant) as connection:
        connection.execute(QUERIES["lock_first_use"])
        row = connection.execute(QUERIES["find_tenant"], {"tenant": tenant}).fetchone()
        if row is not None:
            return str(row[0])
        others = census.survey(connection, files)
        if origin in others:
            refuse(
                "INVALID_INPUT",
                f"An origin is one ledger's name under which its checkpoints are signed, and {origin} is that of "
                "another ledger of this database. Give another, or leave it out.",
            )
        ledger = UlidMint(clock)()
        _write_first(connection, ledger, tenant, files, clock, origin or f"corrigenda.invalid/{ledger}")
        return ledger


def _write_first(
    connection: psycopg.Connection[Row], ledger: str, tenant: str, files: KeyFiles, clock: Clock, origin: str
) -> None:
    # first of all, so that a database which takes no writes is met before a key is made
    row = {"tenant": tenant, "ledger": ledger}
    connection.execute(QUERIES["see"], row)
    connection.execute(QUERIES["insert_tenant"], row)
    derived = keys.make_ledger_key(files.ledger).for_ledger(ledger)
    public_key = keys.verifier_key(origin, keys.make_signing_key(files.signing))
    entry, salt, body = opening_entry(ledger, tenant, origin, public_key, stamp(clock()), derived.seal, UlidMint(clock))
    params = {"ledger": ledger, "hash": entry.hash, "projector": PROJECTOR_VERSION}
    connection.execute(QUERIES["insert_head"], params)
    columns = {
        "seqs": [0],
        "streams": [entry.envelope.stream],
        "stream_seqs": [0],
        "envelopes": [entry.raw],
        "hashes": [entry.hash],
        "seals": [entry.seal],
        "requests": [None],
    }
    connection.execute(QUERIES["insert_events"], {"ledger": ledger, **columns})
    payload = {"ledger": ledger, "seqs": [0], "salts": [salt], "bodies": [body]}
    connection.execute(QUERIES["insert_payloads"], payload)


def opening_entry(
    ledger: str,
    tenant: str,
    origin: str,
    public_key: str,
    at: str,
    seal: Callable[[bytes], bytes],
    mint: Callable[[], str],
    salt: bytes | None = None,
) -> tuple[Entry, bytes, bytes]:
    """Return event 0 of a ledger, with its payload's salt and bytes."""
    salt = os.urandom(digest.SALT_BYTES) if salt is None else salt
    body = codec.encode_payload(LedgerName(tenant=tenant))
    facts = LedgerOpened(
        algorithms=Algorithms(),
        canonical_form=governance.CANONICAL_FORM,
        incarnation=1,
        origin=origin,
        public_key=public_key,
    )
    envelope = Envelope(
        actor=governance.OPENER,
        at=at,
        authn="local",
        facts=facts,
        log=origin,
        op=f"op_{mint()}",
        op_count=1,
        op_index=0,
        payload_len=len(body),
        payload_sha256=digest.commitment(salt, body),
        prev_b3=digest.GENESIS.hex(),
        request=None,
        request_fp=None,
        schema=codec.SCOPE_SCHEMA,
        seq=0,
        stream=f"led_{ledger}",
        stream_prev_b3=digest.GENESIS.hex(),
        stream_seq=0,
        subjects=(),
        type="ledger.opened.v1",
        v=codec.FORMAT_VERSION,
    )
    raw = codec.encode_envelope(envelope)
    own = digest.link(raw)
    entry = Entry(envelope=envelope, raw=raw, hash=own, stream_hash=digest.stream_link(raw), seal=seal(own))
    return entry, salt, body
