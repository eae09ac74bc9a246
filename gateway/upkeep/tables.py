"""One tenant's tables as they lie: connected to when they are first needed, as the writer or as their owner.

With `create=False` it makes nothing: no home, no server, no ledger, no key.
"""

from contextlib import suppress
from typing import Literal, Self

from gateway.audit import anchors
from gateway.embedded import Say, Server, attach
from gateway.settings import Settings
from gateway.upkeep import roles
from ledger import keys
from ledger.clock import system_clock
from ledger.digest import LedgerKeys
from ledger.errors import CorrigendaError
from ledger.opening import find_ledger, kept_anchor, missing, open_ledger
from ledger.store import Database, Store

Role = Literal["owner", "writer"]


class Tables:
    """The database, the ledger in it and its keys, each opened when something asks for it. A context manager."""

    def __init__(self, settings: Settings, *, create: bool, say: Say | None = None) -> None:
        self._settings = settings
        self._create = create
        self._say = say
        self._server: Server | None = None
        self._database: Database | None = None
        self._owner: Database | None = None
        self._store: Store | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for database in (self._database, self._owner):
            if database is not None:
                database.close()
        if self._server is not None:
            self._server.close()

    def _connected(self) -> Database:
        if self._database is None:
            url = self._settings.database_url
            revive = self._attached if url is None else None
            self._database = Database(url or self._attached(), pooled=self._settings.pooled, revive=revive)
        return self._database

    def _attached(self) -> str:
        """Return where the embedded server is, started if it does not run (any more)."""
        anchors.check_server(self._settings)
        left, self._server = (
            self._server,
            attach(
                self._settings.home,
                grace_s=self._settings.embedded_grace_s,
                create=self._create,
                say=self._say,
                postgres_bin=self._settings.postgres_bin,
            ),
        )
        if left is not None:
            left.close()
        return self._server.dsn

    def _as_owner(self) -> Database:
        """Return the database as its owner, where we know who that is: on our own server; else as the URL has it."""
        database = self._connected()
        if self._server is None:
            return database
        if self._owner is None:
            self._owner = Database(self._server.owner_dsn)
        return self._owner

    def _checked(self) -> Database:
        """Return the database, its schema this version's; on our own server it is brought to that where it may be."""
        database = self._connected()
        owner_url = None if self._server is None else self._server.owner_dsn
        if self._create and owner_url is not None:
            roles.ensure_migrated(database, owner_url)
        roles.check_schema(database, owner_url)
        return database

    def _opened(self) -> Store:
        """Return the tenant's tables; without a ledger in them, NOT_CONFIGURED."""
        if self._store is None:
            database, kept = self._checked(), kept_anchor(self._settings.anchors)
            ledger = find_ledger(database, self._settings.tenant)
            if ledger is None and self._create:
                settings = self._settings
                made = open_ledger(
                    database,
                    tenant=settings.tenant,
                    files=settings.keys,
                    anchors=settings.anchors,
                    clock=system_clock,
                )
                made.close()
                ledger = made.store.ledger
            if ledger is None:
                raise missing(database, self._settings.tenant, kept)
            self._store = Store(database, ledger)
        return self._store

    def _keys(self) -> LedgerKeys | None:
        """Return the ledger's keys, or None if there is no key file that can be used."""
        with suppress(CorrigendaError):
            return keys.read_ledger_key(self._settings.keys.ledger).for_ledger(self._opened().ledger)
        return None
