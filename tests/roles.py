"""Shared hands: one database as two roles. The product opens it as the writer; whoever looks or tampers is its owner.

The embedded server tells who somebody is by the kernel's word, so the name is all that differs. On a server that was
given (`CORRIGENDA_TEST_DATABASE_URL`) the writer is a login role of the tests', with a password.
"""

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from gateway.embedded import WRITER
from gateway.embedded.cluster import OWNER

LOGIN = "corrigenda_test_writer"
PASSWORD = "written in a test"


def as_writer(url: str) -> str:
    """Return the connection string of a migrated database as the role that a service logs in as."""
    if conninfo_to_dict(url).get("user") in (OWNER, WRITER):
        return make_conninfo(url, user=WRITER)
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [LOGIN]).fetchall():
            making = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
            connection.execute(making.format(sql.Identifier(LOGIN), PASSWORD, sql.Identifier(WRITER)))
    return make_conninfo(url, user=LOGIN, password=PASSWORD)


def as_owner(url: str) -> str:
    """Return the connection string of the same database as its owner, who sees everything."""
    found = conninfo_to_dict(url)
    if found.get("user") == LOGIN:
        return make_conninfo(os.environ["CORRIGENDA_TEST_DATABASE_URL"], dbname=found["dbname"])
    return make_conninfo(url, user=OWNER) if found.get("user") == WRITER else url


def as_role(url: str, name: str) -> str:
    """Return the connection string of a session that acts as another role, one that may not log in either."""
    return make_conninfo(as_owner(url), options=f"-c role={name}")


@contextmanager
def passing_role(url: str, *attributes: LiteralString) -> Generator[str]:
    """Make a role with these attributes for as long as the block runs; what it owns in that database goes with it."""
    name = f"corrigenda_test_{secrets.token_hex(6)}"
    role = sql.Identifier(name)
    with psycopg.connect(as_owner(url), autocommit=True) as connection:
        words = sql.SQL(" ").join(sql.SQL(attribute) for attribute in attributes)
        connection.execute(sql.SQL("CREATE ROLE {} {}").format(role, words))
        try:
            yield name
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))
