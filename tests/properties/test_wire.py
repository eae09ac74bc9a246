"""Parameters in the server's binary format: what is sent is what the server has, and gives back byte for byte."""

import struct
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.pq import Format

from ledger.flush import Flush
from ledger.store import Write
from ledger.wire import integer, statement
from tests.strategies import TEXTS

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "bytea": st.binary(max_size=300),
    "bigint": st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), -1, 0, 2**63 - 1])),
    "integer": st.one_of(st.integers(-(2**31), 2**31 - 1), st.sampled_from([-(2**31), -1, 0, 2**31 - 1])),
}
patient = settings(deadline=None)  # each example asks a server, which others may keep busy
BEYOND = {"bigint": [-(2**63) - 1, 2**63], "integer": [-(2**31) - 1, 2**31]}


class Server:
    """A server that is sent values, both with and without prepared statements."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self._flushes = [Flush(self.connection, prepare=prepare) for prepare in (True, False)]
        self._transformer = Transformer(self.connection)

    def sent(self, query: str, **params: Any) -> list[Any]:
        """Return a query's first row, as the driver reads it; it is the same in both ways."""
        found = [flush.run([Write(query, params)])[0] for flush in self._flushes]
        rows = [[answer.get_value(0, column) for column in range(answer.nfields)] for answer in found]
        assert rows[0] == rows[1]
        oids = [found[0].ftype(column) for column in range(found[0].nfields)]
        return [self._read(oid, raw) for oid, raw in zip(oids, rows[0], strict=True)]

    def _read(self, oid: int, raw: bytes | None) -> Any:
        return None if raw is None else self._transformer.get_loader(oid, Format.BINARY).load(raw)

    def raw(self, query: str, **params: Any) -> bytes | None:
        """Return the bytes of a query's one value."""
        return self._flushes[0].run([Write(query, params)])[0].get_value(0, 0)


@pytest.fixture(scope="module")
def server(server_url: str) -> Iterator[Server]:
    """Return a server that is sent values."""
    made = Server(server_url)
    yield made
    made.connection.close()


@pytest.mark.parametrize("name", SCALARS)
@patient
@given(data=st.data())
def test_a_value_arrives_as_it_was(server: Server, name: str, data: st.DataObject) -> None:
    """Given any value of a type, or null, when it is sent, then the server gives it back."""
    value = data.draw(st.none() | SCALARS[name])

    assert server.sent(f"SELECT %(value)s::{name}", value=value) == [value]


@pytest.mark.parametrize("name", SCALARS)
@patient
@given(data=st.data())
def test_an_array_arrives_as_it_was(server: Server, name: str, data: st.DataObject) -> None:
    """Given any array, empty or with nulls, when it is sent, the server gives it back, and as many rows of it."""
    values = data.draw(st.lists(st.none() | SCALARS[name], max_size=20) | st.lists(SCALARS[name], max_size=20))
    query = f"SELECT %(values)s::{name}[], (SELECT count(*) FROM unnest(%(values)s) u)"  # noqa: S608 - from SCALARS

    assert server.sent(query, values=values) == [values, len(values)]


@pytest.mark.parametrize("name", SCALARS)
@patient
@given(data=st.data())
def test_an_array_has_the_bytes_that_the_server_would_send(server: Server, name: str, data: st.DataObject) -> None:
    """Given any array that is not empty, the bytes that are sent are those that the server makes of the same."""
    values = data.draw(st.lists(st.none() | SCALARS[name], min_size=1, max_size=20))
    query = f"SELECT %(values)s::{name}[]"
    (sent,) = statement(query).encode({"values": values})

    assert server.raw(query, values=values) == sent


@patient
@given(value=SCALARS["bigint"])
def test_a_number_is_read_as_it_was(server: Server, value: int) -> None:
    """Given any number that fits, when its column comes back, it is read as that number, whatever the width."""
    assert integer(server.raw("SELECT %(value)s::bigint", value=value)) == value
    if -(2**31) <= value < 2**31:
        assert integer(server.raw("SELECT %(value)s::integer", value=value)) == value


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BEYOND.items() for value in values])
def test_a_number_that_does_not_fit_is_not_sent(server: Server, name: str, value: int) -> None:
    """Given a number beyond its type, alone or in an array, it is an error here, and the connection goes on."""
    for query, given_value in ((f"SELECT %(value)s::{name}", value), (f"SELECT %(value)s::{name}[]", [0, value])):
        with pytest.raises(struct.error):
            server.sent(query, value=given_value)

    assert server.sent("SELECT %(value)s::integer", value=1) == [1]


@pytest.mark.parametrize("value", ["\x00", "a\x00b"])
def test_a_text_with_nul_is_refused_by_the_server(server: Server, value: str) -> None:
    """Given a text that the server cannot hold, then the refusal is the server's, and the connection goes on."""
    for query, given_value in (("SELECT %(value)s::text", value), ("SELECT %(value)s::text[]", ["ok", value])):
        with pytest.raises(psycopg.errors.CharacterNotInRepertoire):
            server.sent(query, value=given_value)

    assert server.sent("SELECT %(value)s::text", value="ok") == ["ok"]


def test_one_name_may_stand_in_several_places(server: Server) -> None:
    """Given a parameter that is used twice and cast once, then it is sent once."""
    made = statement("SELECT %(a)s::bigint, %(b)s::text, %(a)s")

    assert (made.names, made.sql) == (("a", "b"), b"SELECT $1::bigint, $2::text, $1::bigint")
    assert server.sent("SELECT %(a)s::bigint, %(b)s::text, %(a)s", a=7, b="x") == [7, "x", 7]


@pytest.mark.parametrize("query", ["SELECT %(a)s", "SELECT %(a)s::numeric", "SELECT %(a)s::boolean[]"])
def test_a_parameter_without_a_known_type_is_refused(query: str) -> None:
    """Given a placeholder without a cast, or of a type that is not known here, it is a ValueError."""
    with pytest.raises(ValueError, match="a"):
        statement(query)
