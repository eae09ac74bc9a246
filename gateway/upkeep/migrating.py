"""Brings a database to this program's schema, and says in the registry's words why it could not be."""

import psycopg

from ledger.driver import refusal, said
from ledger.errors import failure
from migrations import upgrade


def migrate(url: str) -> None:
    """Bring the schema of the database at `url` to this program's version; nothing is changed if a step fails.

    Errors: SCHEMA_MISMATCH (a part of another schema is in the way), UNAVAILABLE (no connection, no writes).
    """
    from sqlalchemy import exc  # here, because only who migrates needs it

    try:
        upgrade(url)
    except exc.DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):
            raise
        raise _refused(error.orig) from error
    except psycopg.OperationalError as error:
        raise _refused(error) from error


def _refused(error: psycopg.Error) -> Exception:
    known = refusal(error)
    if known is not None:
        return known
    code = "UNAVAILABLE" if isinstance(error, psycopg.OperationalError) else "SCHEMA_MISMATCH"
    return failure(
        code,
        f"The ledger's schema should have been made or migrated, and the database refused that ({said(error)}). "
        "Nothing was changed. Put that right, and run `corrigenda db migrate` again.",
    )
