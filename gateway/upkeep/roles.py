"""Which database role does what: the owner makes and migrates, a writer serves, and nobody who serves may do more.

Whoever may change what is stored, or see every ledger, is refused before the first answer. Must never make a login role
of anybody's: their names and passwords are for the database's owner to choose.
"""

from contextlib import closing
from typing import NoReturn

from gateway.embedded import TIME_OUTS, WRITER
from gateway.upkeep import migrating
from ledger.errors import ForbiddenError, refuse
from ledger.store import Database, OwnRole, identifier
from migrations import LATEST, NotAllowedError

APPLICATION = "corrigenda_app"  # a name to suggest; any other will do
NEXT = (
    "give the service both key files, and the URL (CORRIGENDA_DATABASE_URL) of a login role of its own; with a "
    f"password of your choice it is made by a role with CREATEROLE that may grant {WRITER} "
    "(who made that, or a superuser):"
)


def migrate(url: str) -> None:
    """Bring the schema at `url`, the owner's, to this version. FORBIDDEN_ACTOR says what the role may not do there."""
    try:
        migrating.migrate(url)
    except NotAllowedError as error:
        if error.roles:
            making = "; ".join(f"CREATE ROLE {role} NOLOGIN" for role in error.roles)
            refuse(
                "FORBIDDEN_ACTOR",
                f"The ledger needs the roles {', '.join(error.roles)}, and this database role may not make them; "
                f"nothing was changed. Let a role with CREATEROLE run: {making}. Then do this again.",
                sql=making,
            )
        refuse(
            "FORBIDDEN_ACTOR",
            f"The schema is made and migrated by the tables' owner, and this database role may not ({error}); nothing "
            "was changed. Give the owner's URL for this one command (--database-url).",
        )


def ensure_migrated(database: Database, owner_url: str) -> None:
    """Bring the schema of a server of ours to this version, as its owner; to the writer an older one may be closed."""
    try:
        found = database.schema_version()
    except ForbiddenError:
        found = None
    if (found or "") < LATEST:
        migrate(owner_url)


def check_schema(database: Database, owner_url: str | None) -> None:
    """Refuse with SCHEMA_MISMATCH another schema than this version's; to the writer an older one may be closed."""
    try:
        database.check_schema()
    except ForbiddenError:
        if owner_url is not None:
            with closing(Database(owner_url)) as owner:
                owner.check_schema()
        raise


def check_role(database: Database) -> None:
    """Refuse with FORBIDDEN_ACTOR to serve as a role that may do more than write a ledger, or not even that."""
    role = database.own_role()
    faults = excess(role)
    if faults:
        refuse(
            "FORBIDDEN_ACTOR",
            f"A service's database role may add to a ledger and nothing more, and {role.name} {' and '.join(faults)}, "
            f"so that it could change what is stored. Nothing was read or written. {login_advice()}",
            role=role.name,
        )
    if not role.may_write:
        _refuse_stranger(role.name)


def excess(role: OwnRole) -> list[str]:
    """Return what a role may do that no service should, in words; a superuser is told that and no more."""
    if role.is_superuser:
        return ["is a superuser"]
    bypasses = ["bypasses row-level security (BYPASSRLS)"] if role.bypasses_rls else []
    return bypasses + (["owns the tables, or is a member of their owner"] if role.owns_tables else [])


def login_statements(name: str = APPLICATION) -> list[str]:
    """Return the SQL that makes a login role for a service, a statement each; its password is left to be filled in."""
    settings = [f"ALTER ROLE {name} SET {setting} = '{value}';" for setting, value in TIME_OUTS.items()]
    return [f"CREATE ROLE {name} LOGIN PASSWORD '…' IN ROLE {WRITER};", *settings]


def login_advice() -> str:
    """Return what is run to make a login role for a service, and what to do with it then, in one paragraph."""
    return (
        f"Let a role with CREATEROLE that may grant {WRITER} run: {' '.join(login_statements())} Then give "
        "that role's URL (CORRIGENDA_DATABASE_URL); the owner's is for `corrigenda db init` and `corrigenda db "
        "migrate`."
    )


def _refuse_stranger(name: str) -> NoReturn:
    refuse(
        "FORBIDDEN_ACTOR",
        f"A service's database role is a member of {WRITER}, and {name} is not. Let the owner run: GRANT {WRITER} TO "
        f"{identifier(name)}.",
        role=name,
    )
