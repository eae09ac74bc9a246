"""Cursors: where a list goes on, in words that only this ledger could have written and only for the same question.

A cursor says at which position the list is read, and what was given last. It is opaque to callers, and must never be
believed before its digest was checked.
"""

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ledger.codec import canonical
from ledger.digest import LedgerKeys
from ledger.errors import failure
from ledger.limits import LIST_CHARS_MAX

_CHARS_MAX = 512
_DIGEST_BYTES = 32
_Item = TypeVar("_Item")


class Place(NamedTuple):
    """Where a list goes on: read at `position`, above `last`, the key of the item that was given last."""

    position: int
    last: int


class _Body(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    incarnation: int
    position: int
    last: int | str
    filter: str


class Cursors:
    """Makes and reads the cursors of one ledger in one incarnation."""

    def __init__(self, keys: LedgerKeys, incarnation: int) -> None:
        self._keys = keys
        self._incarnation = incarnation

    def make(self, place: Place, wanted: Mapping[str, Any]) -> str:  # Any: JSON
        """Return the cursor of a list for what it was asked."""
        return self._made(place.position, place.last, wanted)

    def begin(self, text: str | None, wanted: Mapping[str, Any], *, head: int) -> Place:  # Any: JSON
        """Return where a list begins: before all that there is at the head, or where its cursor says.

        Errors: as `read`, and CURSOR_INVALID for a cursor of a position that the ledger has not reached.
        """
        if text is None:
            return Place(head, -1)
        place = self.read(text, wanted)
        if place.position > head:
            raise failure(
                "CURSOR_INVALID",
                f"The cursor is of position {place.position}, and the ledger ends at {head}. Ask for the first page.",
            )
        return place

    def onward(self, place: Place, last: int | None, wanted: Mapping[str, Any]) -> str | None:  # Any: JSON
        """Return the cursor of the page behind one that was read from a place and ends with `last`; None at the end."""
        return None if last is None else self.make(Place(place.position, last), wanted)

    def make_after(self, last: str, wanted: Mapping[str, Any]) -> str:  # Any: JSON
        """Return the cursor of a list that is read at no position: only what was given last counts, an id."""
        return self._made(0, last, wanted)

    def read(self, text: str, wanted: Mapping[str, Any]) -> Place:  # Any: JSON
        """Return where a list goes on.

        Errors: CURSOR_INVALID (not written by this ledger, or edited, or of another incarnation),
        CURSOR_FILTER_MISMATCH (written for another question).
        """
        body = self._told(text, wanted)
        if not isinstance(body.last, int):
            raise _other_list()
        return Place(body.position, body.last)

    def read_after(self, text: str, wanted: Mapping[str, Any]) -> str:  # Any: JSON
        """Return the id after which a list goes on. Errors: as `read`."""
        body = self._told(text, wanted)
        if not isinstance(body.last, str):
            raise _other_list()
        return body.last

    def _made(self, position: int, last: int | str, wanted: Mapping[str, Any]) -> str:  # Any: JSON
        body = msgspec.json.encode(_Body(self._incarnation, position, last, self._filter(wanted)))
        return base64.urlsafe_b64encode(self._digest(body) + body).decode().rstrip("=")

    def _told(self, text: str, wanted: Mapping[str, Any]) -> _Body:  # Any: JSON
        body = self._checked(text)
        if body.incarnation != self._incarnation:
            raise _invalid("was made before the ledger was restored")
        if body.filter != self._filter(wanted):
            raise _other_list()
        return body

    def _checked(self, text: str) -> _Body:
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) <= _CHARS_MAX else b""
        except ValueError:
            raw = b""
        digest, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        # Several texts decode to the same bytes: only the one that was given out is ours.
        ours = base64.urlsafe_b64encode(raw).decode().rstrip("=") == text
        if not ours or not hmac.compare_digest(digest, self._digest(body)):
            raise _invalid("is not one that this ledger gave out")
        return msgspec.json.decode(body, type=_Body)

    def _digest(self, body: bytes) -> bytes:
        return self._keys.keyed("cursor", body.decode("ascii", "replace"))

    def _filter(self, wanted: Mapping[str, Any]) -> str:  # Any: JSON
        return self._keys.keyed("cursor filter", canonical(dict(wanted)).decode()).hex()[:32]


class Taken(NamedTuple, Generic[_Item]):
    """What one page holds; `last` is the key above which the list goes on, None at its end; `cut`: it was too long."""

    items: list[_Item]
    last: int | None
    cut: bool


def take(found: Iterable[tuple[int, _Item]], limit: int, size: Callable[[_Item], int]) -> Taken[_Item]:
    """Return at most `limit` of the items, with keys that grow: fewer, but one at least, where they are too long."""
    items: list[_Item] = []
    last, chars = -1, 0
    for key, item in found:
        chars += size(item)
        cut = bool(items) and chars > LIST_CHARS_MAX
        if cut or len(items) == limit:
            return Taken(items, last, cut)
        items.append(item)
        last = key
    return Taken(items, None, False)


def _invalid(what: str) -> Exception:
    return failure("CURSOR_INVALID", f"The cursor {what}. Give it as it was given, or ask for the first page.")


def _other_list() -> Exception:
    return failure(
        "CURSOR_FILTER_MISMATCH",
        "The cursor was made for a list with other filters, and goes on only with the same ones. Ask with the "
        "filters of the first page, or without the cursor.",
    )
