"""Statement parameters in PostgreSQL's binary format, made here because a group's arrays are large and their types few.

A query is written with named placeholders and a cast at each (`%(seqs)s::bigint[]`), so its text says what every
parameter is. The format is that of the server's `*_recv` functions: integers big-endian; an array as its number of
dimensions, a null flag, the element type, length and lower bound, then each element after its own length, −1 for null.
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from psycopg.adapt import Transformer
from psycopg.pq.abc import PGresult

_PLACEHOLDER = re.compile(r"%\((\w+)\)s(?:::(\w+(?:\[\])?))?")
_NULL = b"\xff\xff\xff\xff"
_HEADER = struct.Struct("!iIIii").pack
_LENGTH = struct.Struct("!i").pack

Encoder = Callable[[Any], bytes]  # Any: a value of the parameter's type
Params = dict[str, Any]  # Any: whatever the driver adapts
Row = tuple[Any, ...]  # Any: a query's own columns


class Write(NamedTuple):
    """One statement of a transaction, with its parameters."""

    query: str
    params: Params


class Type(NamedTuple):
    """A type of the server: its object id, and what makes its bytes."""

    oid: int
    encode: Encoder


class Statement(NamedTuple):
    """A query with numbered placeholders, and the name and type of each."""

    sql: bytes
    names: tuple[str, ...]
    types: tuple[Type, ...]

    @property
    def oids(self) -> list[int]:
        """Return the object ids of the parameters' types."""
        return [one.oid for one in self.types]

    def encode(self, params: Mapping[str, Any]) -> list[bytes | None]:  # Any: as Encoder
        """Return the parameters' bytes in the statement's order; None is null."""
        values = [params[name] for name in self.names]
        return [None if value is None else one.encode(value) for one, value in zip(self.types, values, strict=True)]


@lru_cache(maxsize=256)
def statement(query: str) -> Statement:
    """Return a query as it is sent. A placeholder that is never cast, or cast to an unknown type, is a ValueError."""
    casts: dict[str, str] = {}
    for name, said in _PLACEHOLDER.findall(query):
        casts[name] = casts.get(name) or said
    unknown = [name for name, said in casts.items() if said not in _TYPES]
    if unknown:
        raise ValueError(f"parameters without a known type: {', '.join(unknown)}")
    names = tuple(casts)
    numbers = {name: number for number, name in enumerate(names, start=1)}
    text = _PLACEHOLDER.sub(lambda found: f"${numbers[found[1]]}::{casts[found[1]]}", query)
    return Statement(text.encode(), names, tuple(_TYPES[casts[name]] for name in names))


@lru_cache(maxsize=256)
def is_typed(query: str) -> bool:
    """Report whether the text of a query says of each of its parameters what it is."""
    try:
        statement(query)
    except ValueError:
        return False
    return True


def rows(answer: PGresult) -> list[Row]:
    """Return the rows of an answer in the binary format; a column of a type that is not known here is a ValueError."""
    types = [answer.ftype(column) for column in range(answer.nfields)]
    if not _COLUMNS.issuperset(types):
        raise ValueError(f"a column of an unknown type: {types}")
    reader = Transformer()
    reader.set_pgresult(answer)
    return reader.load_rows(0, answer.ntuples, tuple)


def integer(raw: bytes | None) -> int:
    """Return the number in an integer column, whatever its width; null is −1."""
    return -1 if raw is None else int.from_bytes(raw, "big", signed=True)


def _array(oid: int, encode: Encoder) -> Encoder:
    def encoded(values: Sequence[Any]) -> bytes:  # Any: as Encoder
        many = len(values)
        if many and values.count(values[0]) == many:  # as in most of a read model's columns
            if values[0] is None:
                return _HEADER(1, 1, oid, many, 1) + _NULL * many
            raw = encode(values[0])
            return _HEADER(1, 0, oid, many, 1) + (_LENGTH(len(raw)) + raw) * many
        if None in values:
            return _HEADER(1, 1, oid, many, 1) + b"".join([_element(value, encode) for value in values])
        parts = [b""] * (2 * many)
        parts[1::2] = raws = [*map(encode, values)]
        parts[::2] = map(_LENGTH, map(len, raws))
        return _HEADER(1, 0, oid, many, 1) + b"".join(parts)

    return encoded


def _numbers(oid: int, letter: str, width: int) -> Encoder:
    """Return what encodes an array of integers in one go, where none of them is null."""
    one = struct.Struct(f"!{letter}").pack
    slowly = _array(oid, one)

    def encoded(values: Sequence[Any]) -> bytes:  # Any: as Encoder
        if None in values:
            return slowly(values)
        pairs = [width] * (2 * len(values))
        pairs[1::2] = values
        return _HEADER(1, 0, oid, len(values), 1) + struct.pack("!" + f"i{letter}" * len(values), *pairs)

    return encoded


def _element(value: Any, encode: Encoder) -> bytes:  # Any: as Encoder
    return _NULL if value is None else _LENGTH(len(raw := encode(value))) + raw


_SCALARS = {
    "text": Type(25, str.encode),
    "bytea": Type(17, bytes),
    "bigint": Type(20, struct.Struct("!q").pack),
    "integer": Type(23, struct.Struct("!i").pack),
}
_COLUMNS = frozenset({16, 17, 20, 21, 23, 25, 1043})  # boolean, bytea, integers, texts: what our queries ask for
_TYPES = _SCALARS | {
    "text[]": Type(1009, _array(25, str.encode)),
    "bytea[]": Type(1001, _array(17, bytes)),
    "bigint[]": Type(1016, _numbers(20, "q", 8)),
    "integer[]": Type(1007, _numbers(23, "i", 4)),
}
