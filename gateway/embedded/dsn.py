"""The connection string of an embedded server, complete enough that no PG* variable can bend it.

Nothing in it is secret: the kernel says who connects. Must never leave to the environment what libpq would
take from there (PGHOSTADDR, PGREQUIREAUTH, PGOPTIONS and the rest).
"""

import os

from psycopg import pq

from gateway.embedded.cluster import OWNER, PORT
from gateway.embedded.places import Place

_NOT_RESET = ("service", "servicefile", "password")
_NOT_EMPTY = {"min_protocol_version": "3.0", "max_protocol_version": "3.0"}  # libpq refuses an empty one


def dsn(place: Place, *, role: str = OWNER, database: str = "postgres") -> str:
    """Return a libpq connection string; by `requirepeer` libpq checks the server's account, too."""
    parts = {
        "host": str(place.run),
        "hostaddr": "",
        "port": str(PORT),
        "user": role,
        "dbname": database,
        "options": "",
        "sslmode": "disable",
        "gssencmode": "disable",
        "target_session_attrs": "any",
        "requirepeer": place.account.pw_name,
    }
    return _joined(_disarmed_variables() | parts)


def _joined(parts: dict[str, str]) -> str:
    quoted = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in parts.items()}
    return " ".join(f"{name}='{value}'" for name, value in quoted.items())


def _disarmed_variables() -> dict[str, str]:
    """Return the built-in value of every option whose PG* variable is set; the list is this libpq's own."""
    found: dict[str, str] = {}
    for option in pq.Conninfo.get_defaults():
        name, variable = option.keyword.decode(), (option.envvar or b"").decode()
        if variable and variable in os.environ and name not in _NOT_RESET:
            found[name] = (option.compiled or b"").decode() or _NOT_EMPTY.get(name, "")
    return found
