"""The shape of the database, as numbered steps that only add. Each step is a `.sql` file; Alembic keeps the count.

Importing this module must stay cheap: the version check before the first query never imports Alembic.
"""

import re
import threading
from pathlib import Path
from typing import LiteralString, cast

SCHEMA = "corrigenda"
LATEST = "0005"

_ALEMBIC = threading.Lock()  # it keeps what it is at in its module, for one migration at a time
_FOLDER = Path(__file__).parent
_STATEMENT = re.compile(r"(?:\$\$.*?\$\$|[^;])+", re.DOTALL)


class NotAllowedError(Exception):
    """The role that migrates may not do what a step needs; nothing was changed. `roles` are those it may not make."""

    def __init__(self, said: str, *, roles: tuple[str, ...] = ()) -> None:
        super().__init__(said)
        self.roles = roles


def upgrade(url: str) -> None:
    """Bring the database at `url` (a libpq connection string) to LATEST; at LATEST already, change nothing.

    One transaction under the ledger's advisory lock, so that two callers cannot both migrate. Errors: NotAllowedError.
    """
    import psycopg
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, exc, pool, text

    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=pool.NullPool)
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    try:
        with _ALEMBIC, engine.begin() as connection:
            for statement in _statements("prepare.sql"):
                connection.execute(text(statement))
            config.attributes["connection"] = connection
            command.upgrade(config, LATEST)
    except exc.ProgrammingError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise
        raise NotAllowedError(str(error.orig).splitlines()[0]) from error


def make_roles() -> None:
    """Make the roles that the cluster does not have yet. Errors: NotAllowedError naming them."""
    from alembic import op
    from sqlalchemy import text

    connection = op.get_bind()
    looking, making = _statements("roles.sql")
    missing = connection.execute(text(looking)).scalars().all()
    if missing:
        raise NotAllowedError("permission denied to create role", roles=tuple(missing))
    connection.execute(text(making))


def run_sql_beside(module_file: str) -> None:
    """Run the `.sql` file that lies beside a step's module, statement by statement."""
    from alembic import op

    for statement in _statements(str(Path("versions") / Path(module_file).with_suffix(".sql").name)):
        op.execute(statement)


def _statements(name: str) -> list[LiteralString]:
    """Return the statements of one of our own files; a semicolon stands inside one only between two `$$`."""
    source = (_FOLDER / name).read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if not line.startswith("--")]
    parts = [part.strip() for part in _STATEMENT.findall("\n".join(lines))]
    # The text is a file of this package, never anybody's input, hence a literal in all but name.
    return [cast(LiteralString, part) for part in parts if part]
