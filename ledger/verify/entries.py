"""One entry by itself: its envelope against its columns, its seal and its payload.

Nearly every entry is sound, so one look says whether it is; only where it is not does a second, slower one say how.
Nothing here knows what came before the entry.
"""

from collections.abc import Callable
from typing import NamedTuple

from ledger import codec, digest
from ledger.chain import Envelope
from ledger.digest import SealKey
from ledger.governance import LedgerOpened
from ledger.verify.pages import NO_PAYLOAD, Payload, Row
from ledger.verify.report import Findings

OPENING = "ledger.opened.v1"


class Ledger(NamedTuple):
    """Which ledger the entries should be of, as far as that is known, and what sealed them, if it is here."""

    id: str
    origin: str | None
    keys: SealKey | None


def is_sound(envelope: Envelope, row: Row, payload: Payload, origin: str) -> bool:
    """Report whether columns and payload are what the envelope of an ordinary entry says; False may be wrong."""
    seq, stream, stream_seq, _, _, _, request = row
    salt, body = payload
    if envelope.seq != seq or envelope.stream != stream or envelope.stream_seq != stream_seq:
        return False
    if envelope.log != origin or envelope.type == OPENING or seq == 0:
        return False
    if request is None or envelope.request is None:
        if request is not envelope.request:
            return False
    elif request.hex() != envelope.request:
        return False
    if envelope.payload_sha256 is None or salt is None or body is None:
        return envelope.payload_sha256 is envelope.payload_len is salt is body is None
    return _is_committed(envelope, salt, body) and codec.is_payload(envelope.type, body)


def _is_committed(envelope: Envelope, salt: bytes, body: bytes) -> bool:
    return (
        len(body) == envelope.payload_len
        and len(salt) == digest.SALT_BYTES
        and digest.commitment(salt, body) == envelope.payload_sha256
    )


def explain(
    envelope: Envelope, row: Row, payload: Payload, ledger: Ledger, findings: Findings, miss: Callable[[int], None]
) -> None:
    """Record what is wrong with an entry that may not be sound; a payload that is not there at all goes to `miss`."""
    _explain_columns(envelope, row, ledger, findings)
    if envelope.payload_sha256 is not None and payload == NO_PAYLOAD:
        miss(row[0])
    else:
        _explain_payload(envelope, row[0], payload, findings)


def _explain_columns(envelope: Envelope, row: Row, ledger: Ledger, findings: Findings) -> None:
    seq, stream, stream_seq, _, _, _, request = row
    if envelope.seq != seq:
        findings.bad("chain", seq, f"the entry of position {seq}", f"the one of position {envelope.seq}")
    if (envelope.stream, envelope.stream_seq) != (stream, stream_seq):
        findings.bad("streams", seq, "the envelope's stream in the columns", "another place or stream")
    if (None if request is None else request.hex()) != envelope.request:
        findings.bad("chain", seq, "the envelope's request in its column", "another")
    if envelope.log != ledger.origin:
        findings.bad("chain", seq, "an entry of this ledger", "one of another")
    if seq == 0 or envelope.type == OPENING:
        _explain_opening(envelope, seq, ledger, findings)


def _explain_opening(envelope: Envelope, seq: int, ledger: Ledger, findings: Findings) -> None:
    facts = envelope.facts
    if not isinstance(facts, LedgerOpened):
        findings.bad("chain", seq, "the opening of the ledger", "another event")
    elif seq != 0:
        findings.bad("chain", seq, "no second opening", "one")
    elif not opens(envelope, ledger.id):
        findings.bad("chain", seq, "the opening of this ledger", "that of another")


def opens(envelope: Envelope, ledger: str) -> bool:
    """Report whether an envelope is the opening of a ledger in its own name."""
    facts = envelope.facts
    return isinstance(facts, LedgerOpened) and (facts.origin, envelope.stream) == (envelope.log, f"led_{ledger}")


def _explain_payload(envelope: Envelope, seq: int, payload: Payload, findings: Findings) -> None:
    salt, body = payload
    if envelope.payload_sha256 is None:
        if (envelope.payload_len, salt, body) != (None, None, None):
            findings.bad("payloads", seq, "no payload", "one")
    elif salt is None or body is None:
        findings.bad("payloads", seq, "the payload that was committed to", "half of it")
    elif not _is_committed(envelope, salt, body):
        findings.bad("payloads", seq, "the payload that was committed to", "another")
    else:
        try:
            codec.decode_payload(envelope.type, body)
        except codec.NotCanonical as error:
            findings.bad("payloads", seq, "a payload in canonical form", str(error))
