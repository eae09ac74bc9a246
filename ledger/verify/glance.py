"""Entries in which nothing at all is wrong, looked at by columns: in three quarters of the time of one after the other.

It says only whether some entries are sound behind what came before them, and what comes of them, as `course` has it.
It never says what is wrong: whatever is out of the ordinary is for `course` to look at.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ledger import codec, digest
from ledger.chain import Envelope
from ledger.erasure import OF_ERASURES
from ledger.verify.aside import Part, Request
from ledger.verify.entries import Ledger
from ledger.verify.pages import NO_PAYLOAD, Page, Row

AT_ONCE = 128  # entries: what is made of them lies in the processor's cache until it is used
GENESIS = digest.GENESIS.hex()
Append = tuple[str, int, str, str, str]


class Place(NamedTuple):
    """What an entry has to follow: see `Course`. `append` is the last one of several entries.

    After a glance, `parts` are those that it began or went on with.
    """

    seq: int
    previous: bytes | None
    append: Append | None
    append_left: int | None
    at: str
    parts: Mapping[str, Part]


class Glance(NamedTuple):
    """What sound entries come to, and what the next one has to follow. `clock_backs` and `absent` are positions."""

    envelopes: list[Envelope]
    leaves: list[bytes]
    follows: Place
    clock_backs: list[int]
    requests: list[Request]
    absent: list[int]
    erasing: list[Envelope]


def glance(page: Page, place: Place, ledger: Ledger) -> Glance | None:
    """Return what a page comes to if it is sound and follows `place`; None says nothing about it."""
    rows = page.rows
    raws = [row[3] for row in rows if row[3] is not None]
    if ledger.origin is None or place.seq == 0 or len(raws) < max(1, len(rows)):
        return None
    links = digest.links(raws)
    if not _are_sealed(rows, links, ledger):
        return None
    envelopes = codec.scan_envelopes(raws)
    if envelopes is None or not _fit_columns(rows, envelopes, place.seq, ledger.origin):
        return None
    absent = _absent(page, envelopes)
    parts = _parts(envelopes, digest.stream_links(raws), place.parts)
    append = _appends(envelopes, place)
    if absent is None or parts is None or append is None or not _are_linked(envelopes, place.previous, links):
        return None
    times = [place.at, *(envelope.at for envelope in envelopes)]
    return Glance(
        envelopes=envelopes,
        leaves=digest.leaves(raws),
        follows=Place(place.seq + len(rows), links[-1], *append, times[-1], parts),
        clock_backs=[place.seq + nth for nth, at in enumerate(times[1:]) if at < times[nth]],
        requests=[Request(row[6], row[0]) for row in rows if row[6] is not None],
        absent=absent,
        erasing=[envelope for envelope in envelopes if envelope.type in OF_ERASURES],
    )


def _are_sealed(rows: Sequence[Row], links: list[bytes], ledger: Ledger) -> bool:
    if [row[4] for row in rows] != links:
        return False
    return ledger.keys is None or [row[5] for row in rows] == ledger.keys.seals(links)


def _fit_columns(rows: Sequence[Row], envelopes: list[Envelope], first: int, origin: str) -> bool:
    """Report whether the columns are what the envelopes say, and those of positions without a gap from `first` on."""
    positions = [*range(first, first + len(rows))]
    return (
        [row[0] for row in rows] == positions == [envelope.seq for envelope in envelopes]
        and [row[1] for row in rows] == [envelope.stream for envelope in envelopes]
        and [row[2] for row in rows] == [envelope.stream_seq for envelope in envelopes]
        and [row[6] and row[6].hex() for row in rows] == [envelope.request for envelope in envelopes]
        and [envelope.log for envelope in envelopes] == [origin] * len(rows)
    )


def _are_linked(envelopes: list[Envelope], previous: bytes | None, links: list[bytes]) -> bool:
    named = [envelope.prev_b3 for envelope in envelopes]
    before = [named[0] if previous is None else previous.hex(), *(link.hex() for link in links[:-1])]
    return named == before


def _absent(page: Page, envelopes: list[Envelope]) -> list[int] | None:
    """Return the positions whose payloads are not there at all; None if one is that was not committed to."""
    absent: list[int] = []
    tags: list[str] = []
    bodies: list[bytes] = []
    payload_of = page.payloads.get
    for envelope in envelopes:
        committed = envelope.payload_sha256
        salt, body = payload_of(envelope.seq, NO_PAYLOAD)
        if salt is None or body is None:
            if salt is not body:
                return None
            if committed is not None:
                absent.append(envelope.seq)
        elif (
            len(body) != envelope.payload_len
            or len(salt) != digest.SALT_BYTES
            or digest.commitment(salt, body) != committed
        ):
            return None
        else:
            tags.append(envelope.type)
            bodies.append(body)
    return absent if codec.are_payloads(tags, bodies) else None


def _parts(envelopes: list[Envelope], hashes: list[bytes], before: Mapping[str, Part]) -> dict[str, Part] | None:
    """Return the part of each stream that has entries here; None if one of them does not go on as it has to."""
    parts: dict[str, Part] = {}
    part_of, part_before = parts.get, before.get
    for envelope, own in zip(envelopes, hashes, strict=True):
        stream, place, link = envelope.stream, envelope.stream_seq, envelope.stream_prev_b3
        part = part_of(stream) or part_before(stream)
        if part is None:
            named = None if place == 0 and link == GENESIS else link
            parts[stream] = Part(stream, envelope.seq, place, named, place + 1, own, None)
        elif place != part.version or part.hash is None or link != part.hash.hex():
            return None
        else:
            parts[stream] = Part(stream, part.position, part.place, part.link, place + 1, own, None)
    return parts


def _appends(envelopes: list[Envelope], place: Place) -> tuple[Append | None, int | None] | None:
    """Return the last append of several entries and what is left of it; None if entries do not make whole appends."""
    append, left = place.append, place.append_left
    for envelope in envelopes:
        index, count = envelope.op_index, envelope.op_count
        if left:
            if append_of(envelope) != append or index != count - left:
                return None
        elif left == 0 and index:
            return None
        if index and (envelope.request is not None or envelope.request_fp is not None):
            return None
        left = count - index - 1  # not below 0 in an envelope that was scanned
        if left:
            append = append_of(envelope)
    return append, left


def append_of(envelope: Envelope) -> Append:
    """Return what all entries of one append have in common."""
    return envelope.op, envelope.op_count, envelope.actor, envelope.authn, envelope.at
