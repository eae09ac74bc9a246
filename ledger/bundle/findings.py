"""What comes of a check: the report, what the events show, and the finding with which a check ends before its end."""

from collections.abc import Mapping

from msgspec import Struct

TAMPERED, UNVERIFIABLE = 14, 15


class Finding(Struct, frozen=True):
    """What is wrong: the check that failed, the file or the position, what was expected and what was found."""

    check: str
    place: str
    expected: str
    found: str


class Stream(Struct, frozen=True):
    """One stream of a bundle: how many of its events are here, from the first on, and where the last one stands."""

    stream: str
    events: int
    last: int


class BundleReport(Struct, frozen=True, kw_only=True):
    """What a bundle proves. `exit_code` is 0, 14 (tampered or malformed) or 15 (this key cannot verify it).

    Of the bundle of a whole log, `streams` lists the first thousand; `stream_count` tells how many there are.
    """

    ok: bool
    exit_code: int
    verdict: str
    says: tuple[str, ...]
    profile: str | None = None
    origin: str | None = None
    size: int | None = None
    root: str | None = None
    key_id: str | None = None
    events: int = 0
    streams: tuple[Stream, ...] = ()
    stream_count: int = 0
    payloads: Mapping[str, int] = {}
    finding: Finding | None = None


class Tampered(Exception):
    """Something in the bundle is not what was signed, or not what was written."""

    def __init__(self, check: str, place: str, expected: str, found: str) -> None:
        super().__init__(check)
        self.finding = Finding(check, place, expected, found)
