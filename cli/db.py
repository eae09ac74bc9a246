"""`corrigenda db`: the database under the ledger. `url`, `check` and `current` make nothing."""

from typing import Any, Literal

import click

from cli.context import Session, pass_session
from cli.options import Noun, Verb
from cli.output import as_document, give
from cli.text import inert


@click.group("db", cls=Noun)
def db() -> None:
    """Make, migrate and check the database."""


@db.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda db init --origin ledger.example.org/main --database-url postgresql:///ledger\n"
    "  corrigenda db init --tenant acme",
)
@click.option("--origin", metavar="NAME", help="The ledger's public name; it cannot be changed later.")
@pass_session
def init(session: Session, origin: str | None) -> None:
    """Make schema, keys and the tenant's ledger where there are none.

    A second time it changes nothing. Each tenant has a ledger of its own; without --tenant it is `local`.
    """
    with session.bare(create=True) as bare:
        made = as_document(bare.init(origin=origin))
    give(session, made, lambda: _made(made))


@db.command(cls=Verb, epilog="\b\nExample:\n  corrigenda db migrate --database-url postgresql:///ledger")
@pass_session
def migrate(session: Session) -> None:
    """Bring the schema up to this version's."""
    with session.bare(create=True) as bare:
        done = as_document(bare.migrate())
    give(session, done, lambda: _facts(done))


@db.command(cls=Verb, epilog="\b\nExample:\n  corrigenda db check || corrigenda db migrate")
@pass_session
def check(session: Session) -> None:
    """Check that the database is there and that its schema is this version's: exit 0, else 7."""
    with session.bare(create=False) as bare:
        found = as_document(bare.schema_check())
    give(session, found, lambda: _facts(found))


@db.command(cls=Verb, epilog="\b\nExample:\n  corrigenda db current")
@pass_session
def current(session: Session) -> None:
    """Print the schema's revision."""
    with session.bare(create=False) as bare:
        revision = bare.schema_current()
    give(session, {"revision": revision}, lambda: revision or "none: corrigenda db init makes the schema")


@db.command(cls=Verb, epilog='\b\nExample:\n  psql "$(corrigenda db url --role writer)"')
@click.option("--role", type=click.Choice(["owner", "writer"]), default="owner", help="As whom; owner by default.")
@pass_session
def url(session: Session, role: Literal["owner", "writer"]) -> None:
    """Print the connection string in use, the embedded server's too.

    The embedded server knows two roles: the owner, who may do anything, and the writer, who adds to ledgers. A database
    of your own has the one URL that you gave.
    """
    with session.bare(create=False) as bare:
        found = bare.database_url(role=role)
    give(session, {"url": found}, lambda: found)


def _made(document: dict[str, Any]) -> str:  # Any: JSON
    """Return what was made, and after an empty line the statements to run next, one a line, ready to be pasted."""
    facts = _facts({name: value for name, value in document.items() if name != "sql"})
    return "\n".join([facts, "", *map(inert, document["sql"])]) if "sql" in document else facts


def _facts(document: dict[str, object]) -> str:
    return "\n".join(f"{name}: {_fact(value)}" for name, value in document.items() if name != "schema_version")


def _fact(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else "none" if value is None else inert(str(value))
