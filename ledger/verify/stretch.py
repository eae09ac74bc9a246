"""A page of the ledger checked by itself, without what lies before it: by whom, and in which order, does not matter.

Only a page in which nothing at all is wrong becomes a stretch. So a stretch has nothing to report: it says what the
entry before it has to be, what comes of it for those behind it, and what has to be kept of it. Every other page is
looked at again in its turn.
"""

from msgspec import Struct

from ledger import codec
from ledger.verify.aside import Part, Request
from ledger.verify.course import Course, Start
from ledger.verify.entries import Ledger
from ledger.verify.glance import Append
from ledger.verify.pages import Page
from ledger.verify.report import Findings


class Stretch(Struct, array_like=True, frozen=True, gc=False):
    """What a page of sound entries comes to; `opening` is the envelope of its first entry, as it lies.

    `previous`, `append`, `append_left`, `at`: what the next entry has to follow. `leaves` are 32 bytes an entry.
    `absent` are the positions of payloads that are not there at all, `erasing` the envelopes of events of erasures.
    """

    first: int
    last: int
    opening: bytes
    previous: bytes
    append: Append | None
    append_left: int | None
    at: str
    clock_back: int | None
    clock_backs: int
    leaves: bytes
    parts: list[Part]
    requests: list[Request]
    absent: list[int]
    erasing: list[bytes]


def stretch_of(page: Page, first: int, last: int, ledger: Ledger) -> Stretch | None:
    """Return what the page of the positions `first` to `last` comes to; None if it has to be looked at in its turn."""
    findings = Findings()
    course = Course(ledger, start=Start(first, None), findings=findings)
    leaves = course.look(page)
    opening = page.rows[0][3] if page.rows else None
    if findings.found or course.next != last + 1 or opening is None or course.previous is None:
        return None
    return Stretch(
        first=first,
        last=last,
        opening=opening,
        previous=course.previous,
        append=course.append,
        append_left=course.append_left,
        at=course.at,
        clock_back=course.clock_back,
        clock_backs=course.clock_backs,
        leaves=b"".join(leaves),
        parts=[*course.parts.values()],
        requests=course.requests,
        absent=course.absent,
        erasing=[codec.encode_envelope(envelope) for envelope in course.erasing],
    )
