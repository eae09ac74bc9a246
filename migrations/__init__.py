"""The shape of the database, as numbered steps that only add. Each step is a `.sql` file; Alembic keeps the count.

Importing this module must stay cheap: the version check before the first query never imports Alembic.
"""

from pathlib import Path
from typing import LiteralString, cast

SCHEMA = "corrigenda"
LATEST = "0001"

_FOLDER = Path(__file__).parent


def upgrade(url: str) -> None:
    """Bring the database at `url` (a libpq connection string) to LATEST; at LATEST already, change nothing.

    One transaction under the ledger's advisory lock, so that two callers cannot both migrate.
    """
    import psycopg
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, pool, text

    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=pool.NullPool)
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    with engine.begin() as connection:
        for statement in _statements("prepare.sql"):
            connection.execute(text(statement))
        config.attributes["connection"] = connection
        command.upgrade(config, LATEST)


def run_sql_beside(module_file: str) -> None:
    """Run the `.sql` file that lies beside a step's module, statement by statement."""
    from alembic import op

    for statement in _statements(str(Path("versions") / Path(module_file).with_suffix(".sql").name)):
        op.execute(statement)


def _statements(name: str) -> list[LiteralString]:
    """Return the statements of one of our own files; none of them holds a semicolon inside."""
    source = (_FOLDER / name).read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if not line.startswith("--")]
    parts = [part.strip() for part in "\n".join(lines).split(";")]
    # The text is a file of this package, never anybody's input, hence a literal in all but name.
    return [cast(LiteralString, part) for part in parts if part]
