"""What the database's refusals mean, in the registry's words: tables that are not there, and a database without writes.

Only what has one meaning wherever it happens is told here; all else stays the driver's error for whoever knows more.
"""

import psycopg

from ledger.errors import CorrigendaError, failure
from migrations import LATEST

# A table, a column, a function or the whole schema is missing, or has another type.
_OTHER_SHAPE = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.InvalidColumnReference,
    psycopg.errors.DatatypeMismatch,
)
NO_SCHEMA = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


def refusal(error: psycopg.Error) -> CorrigendaError | None:
    """Return what the database's refusal means, or None where it depends on what was asked."""
    if isinstance(error, _OTHER_SHAPE):
        return failure(
            "SCHEMA_MISMATCH",
            f"The database should hold the ledger's schema, version {LATEST}, and a part is missing or of another "
            f"form ({said(error)}). Nothing was stored, and what is stored was not touched. Put that part back as it "
            "was, from a backup if need be.",
            expected=LATEST,
            found=said(error),
        )
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return failure(
            "UNAVAILABLE",
            f"The database takes no writes at present ({said(error)}): it is a standby, or has "
            "default_transaction_read_only set. Nothing was stored. Use the primary's URL, or take that setting away, "
            "and try again.",
        )
    return None


def said(error: Exception) -> str:
    """Return what the database or the driver says of an error, in a line; never its details, which quote whole rows."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((primary or str(error)).split())[:300]
