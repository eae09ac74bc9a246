"""`doctor`: what is wrong with this installation, one line per check, each with what mends it. It changes nothing."""

import os
import pwd
from collections.abc import Callable
from importlib import metadata

from gateway.audit import anchor_report
from gateway.embedded.places import NAME
from gateway.settings import Settings
from gateway.upkeep.roles import check_role
from ledger.anchor import Unusable
from ledger.codec import read_entry
from ledger.digest import LedgerKeys
from ledger.errors import CorrigendaError, failure, refuse
from ledger.keys import read_ledger_key
from ledger.opening import anchor_path
from ledger.store import Database, Store
from ledger.walk import unfit_file

Check = tuple[str, bool, str, str | None]


def run(
    settings: Settings,
    database: Callable[[], Database],
    store: Callable[[], Store],
    keys: Callable[[], LedgerKeys | None],
    chain: Callable[[int], tuple[str, str | None]],
) -> list[Check]:
    """Return the checks, outside in; one that cannot be made says why and is not well."""
    return [
        _files(),
        _home(settings),
        *_account(settings),
        _tried("database", lambda: _server(database())),
        _tried("durability", lambda: _durable(database())),
        _tried("schema", lambda: _schema(database())),
        _tried("role", lambda: _role(database())),
        _tried("ledger", lambda: f"ledger {store().ledger}, {store().head().seq + 1} events"),
        _tried("key", lambda: _key(settings, store, keys)),
        _tried("anchor", lambda: _anchor(settings, store())),
        _tried("chain", lambda: _followed(*chain(store().head().seq))),
    ]


def _tried(name: str, look: Callable[[], str]) -> Check:
    try:
        return name, True, look(), None
    except CorrigendaError as error:
        return name, False, error.message, None


def _followed(state: str, problem: str | None) -> str:
    """Return how the chain stands, where it is short enough to be followed here; `verify` reads everything."""
    if state in ("ok", "unchecked"):
        return problem or "every link and seal holds; `corrigenda verify` reads the payloads, too"
    raise failure("INTEGRITY_BROKEN", problem or "The chain is broken. Run `corrigenda verify`.", check="chain")


def _files() -> Check:
    """Compare what is installed with what the distribution's record says was."""
    try:
        distribution = metadata.distribution("corrigenda")
    except metadata.PackageNotFoundError:
        return "installation", False, "corrigenda is not installed as a distribution", "pip install corrigenda"
    missing = [str(file) for file in distribution.files or () if not os.path.exists(file.locate())]
    if missing:
        return "installation", False, f"{len(missing)} installed files are gone", "reinstall corrigenda"
    return "installation", True, f"corrigenda {distribution.version}", None


def _home(settings: Settings) -> Check:
    home = settings.home
    if not home.exists():
        return "home", True, f"{home} is not made yet", None
    if home.stat().st_uid != os.geteuid():
        return "home", False, f"{home} belongs to another user", "set CORRIGENDA_HOME to a directory of your own"
    if not os.access(home, os.W_OK | os.X_OK):
        return "home", False, f"{home} cannot be written", f"chmod u+rwx {home}"
    return "home", True, str(home), None


def _account(settings: Settings) -> list[Check]:
    """Recommend an account of its own to a root whose embedded server would share `nobody` with others."""
    if settings.database_url is not None or os.geteuid() != 0 or _has_account(NAME):
        return []
    advice = (
        f"the embedded server runs as nobody, whom other services may share; for new homes `useradd --system {NAME}` "
        "gives it an account of its own"
    )
    return [("account", True, advice, None)]


def _has_account(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def _server(database: Database) -> str:
    database.schema_version()
    return "the database answers"


def _durable(database: Database) -> str:
    database.check_durability()
    return "what is acknowledged is kept"


def _schema(database: Database) -> str:
    database.check_schema()
    return f"version {database.schema_version()}"


def _role(database: Database) -> str:
    check_role(database)
    return f"{database.role} may write ledgers, and no more"


def _key(settings: Settings, store: Callable[[], Store], keys: Callable[[], LedgerKeys | None]) -> str:
    first = store().at([0])  # a database that does not answer is told first, as what it is
    found = keys()
    if found is None:
        read_ledger_key(settings.keys.ledger)  # says what is wrong with it
        return "the key file can be read"
    entry = read_entry(first[0].envelope, first[0].seal, position=0)
    if not found.is_sealed(entry.hash, entry.seal):
        refuse("LEDGER_UNVERIFIED", f"The key at {settings.keys.ledger} is another ledger's. Give this ledger's own.")
    return f"{settings.keys.ledger} is this ledger's"


def _anchor(settings: Settings, store: Store) -> str:
    try:
        return anchor_report.examine(store, settings.anchors)
    except Unusable as fault:
        raise unfit_file(anchor_path(settings.anchors, store.ledger), fault) from fault
