"""Shared hands: one database as two roles. The product opens it as the writer; whoever looks or tampers is its owner.

The embedded server tells who somebody is by the kernel's word, so the name is all that differs. On a server that was
given (`CORRIGENDA_TEST_DATABASE_URL`) the writer is a login role of the tests', with a password.
"""

import os

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from gateway.embedded import WRITER
from gateway.embedded.cluster import OWNER

LOGIN = "corrigenda_test_writer"
PASSWORD = "written in a test"  # noqa: S105


def as_writer(url: str) -> str:
    """Return the connection string of a migrated database as the role that a service logs in as."""
    if conninfo_to_dict(url)["user"] in (OWNER, WRITER):
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
