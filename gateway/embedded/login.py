"""The role that a ledger is used as: one that may log in, and whose statements do not wait for ever.

Made and mended at every attach, so that a cluster from before there was such a role opens, too. What the role may do
to tables is for migrations to say. Must never give it more than a login.
"""

import psycopg
from psycopg import sql

from gateway.embedded.cluster import TIME_OUTS, WRITER
from ledger.sql import load

_QUERIES = load("gateway.embedded")


def ensure_writer(connection: psycopg.Connection, found: str) -> None:
    """Make the writer a role that may log in, unless `found`, its attributes and settings in words, says that it is.

    Settings that somebody chose for it stay.
    """
    words = found.split()
    has = {word.partition("=")[0] for word in words}
    missing = [name for name in TIME_OUTS if name not in has]
    if "LOGIN" in has and not missing:
        return
    with connection.transaction():  # others that attach now wait, and then change nothing
        connection.execute(_QUERIES["lock_first_use"])
        connection.execute(_QUERIES["make_writer"])
        for name in missing:
            setting = sql.SQL("ALTER ROLE {} SET {} = {}")
            connection.execute(setting.format(sql.Identifier(WRITER), sql.Identifier(name), TIME_OUTS[name]))
