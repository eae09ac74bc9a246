"""Reading many things at once where some may be broken: what is broken is left out and named, the rest is answered."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from ledger.errors import IntegrityError

KeyT = TypeVar("KeyT", str, int)
ValueT = TypeVar("ValueT")


def sound(
    read: Callable[[Collection[KeyT]], Mapping[KeyT, ValueT]], keys: Collection[KeyT], warnings: list[str]
) -> Mapping[KeyT, ValueT]:
    """Read a set at once; if something in it is broken, one by one, and add a warning for each that is."""
    try:
        return read(keys)
    except IntegrityError:
        found: dict[KeyT, ValueT] = {}
        for key in sorted(keys):
            try:
                found |= read([key])
            except IntegrityError as error:
                warnings.append(f"INTEGRITY_BROKEN@{error.details['position']}")
        return found
