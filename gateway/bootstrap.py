"""The composition root: settings to an open gateway. Nothing else knows how the parts are put together."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from gateway.audit import anchors
from gateway.embedded import Say, Server, attach, locate
from gateway.scope.permissions import Actor, granted
from gateway.service import Gateway
from gateway.service.typed import typed
from gateway.settings import Settings, read_settings
from gateway.shapes import requests
from gateway.traces.losses import Losses
from gateway.upkeep import roles
from gateway.upkeep.bare import BareGateway, open_bare
from gateway.upkeep.survey import survey
from gateway.upkeep.tidying import tidy
from ledger.appending import PROJECTOR_VERSION
from ledger.clock import Clock, system_clock
from ledger.committer import Committer
from ledger.errors import CorrigendaError
from ledger.limits import INDEX_WAIT_S
from ledger.opening import open_ledger
from ledger.store import Database
from ledger.verified import VerifiedLedger
from projections import embedders
from projections.embedders import Embedder
from projections.index import VectorIndex
from projections.models import ALL
from projections.rebuilding import rebuild
from projections.relay import Relay
from projections.scrubbing import Scrubber

__all__ = ["BareGateway", "open_bare", "open_gateway"]


@typed
def open_gateway(
    *,
    database_url: str | None = None,
    home: str | Path | None = None,
    tenant: str | None = None,
    project: str | None = None,
    actor: str | None = None,
    permissions: Iterable[str] | None = None,
    embedder: str | None = None,
    clock: Clock | None = None,
    replay: bool = True,
    create: bool = True,
    say: Say | None = None,
) -> Gateway:
    """Open the ledger, walk its chain and, with `replay`, carry for at most five seconds what waits in the outbox.

    With `replay` the embedded server is also swept, once a day (`gateway/upkeep/tidying.py`).
    Without `create` nothing is made where there is none: no server, no schema, no ledger, no key. `say` is told, in
    one line each, why the embedded server keeps us waiting.

    Errors: SCHEMA_MISMATCH, NOT_CONFIGURED, LEDGER_UNVERIFIED, INTEGRITY_BROKEN, UNAVAILABLE, VALIDATION_FAILED.
    """
    settings = read_settings(
        database_url=database_url, home=home, tenant=tenant, project=project, actor=actor, embedder=embedder
    )
    who = requests.parse(requests.Who, actor=settings.actor, project=settings.project)
    rights = granted(who.actor, permissions)
    database, close = connect(settings, say, create=create)
    moments = clock or system_clock
    try:
        ledger = open_ledger(
            database,
            tenant=settings.tenant,
            files=settings.keys,
            anchors=settings.anchors,
            clock=moments,
            create=create,
        )
        ledger.catch_up()
        if settings.database_url is None and create:
            bring_up_to_date(ledger, say)
        relay = Relay(
            ledger,
            home=settings.home,
            load_embedder=lambda: load_embedder(settings),
            make_index=lambda dimension: make_index(settings.index, dimension),
        )
        if replay:
            _replay(ledger, relay)
            _sweep(ledger, settings, moments)
    except BaseException:
        close()
        raise
    gateway = Gateway(
        ledger,
        relay,
        Committer(ledger, database.another(), ALL, moments),
        actor=Actor(who.actor, rights),
        project=who.project,
        clock=moments,
        files=settings.keys,
        losses=Losses(settings.home, ledger.store.ledger),
        survey=partial(survey, ledger.store, tenant=settings.tenant, home=settings.home, anchors=settings.anchors),
        on_close=close,
    )
    if replay:
        gateway.carry_late()
    return gateway


def connect(settings: Settings, say: Say | None = None, *, create: bool = True) -> tuple[Database, Callable[[], None]]:
    """Return the database, its schema, durability and our role in it checked, and what closes it.

    The embedded server is started, and its schema made and migrated, on first use; anybody else's is theirs to migrate.
    An embedded server that is killed meanwhile is started again when the database is used next. FORBIDDEN_ACTOR if the
    URL's role may do more than add to a ledger.
    """
    servers: list[Server] = []

    def attached() -> str:
        anchors.check_server(settings)
        servers.append(
            attach(
                settings.home,
                grace_s=settings.embedded_grace_s,
                say=say,
                create=create,
                postgres_bin=settings.postgres_bin,
            )
        )
        return servers[-1].dsn

    def close() -> None:
        database.close()
        for server in servers:
            server.close()

    embedded = settings.database_url is None
    url = settings.database_url or attached()
    database = Database(url, pooled=settings.pooled, durable=True, revive=attached if embedded else None)
    try:
        if create and servers:
            roles.ensure_migrated(database, servers[0].owner_dsn)
        roles.check_schema(database, servers[0].owner_dsn if servers else None)
        roles.check_role(database)
    except BaseException:
        close()
        raise
    return database, close


def load_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder that the settings name. Errors: VALIDATION_FAILED, EMBEDDER_UNAVAILABLE."""
    if not settings.embedder.startswith(embedders.OPENAI):
        return embedders.load(settings.embedder)
    key = settings.embedder_api_key
    return embedders.load(
        settings.embedder, base_url=settings.embedder_base_url, api_key=None if key is None else key.reveal
    )


def make_index(kind: str, dimension: int) -> VectorIndex:
    """Return an empty partition of the kind that the settings name."""
    if kind == "exact":
        from projections.index.exact import ExactIndex

        return ExactIndex(dimension)
    from projections.index.faiss_index import FaissIndex

    return FaissIndex(dimension)


def bring_up_to_date(ledger: VerifiedLedger, say: Say | None) -> None:
    """Make read models anew that an older version of the projectors wrote; of a server of ours only.

    Elsewhere other processes may still run that version, and writes are refused until `projections rebuild`.
    """
    row = ledger.head_row
    if row is not None and row.projector < PROJECTOR_VERSION:
        if say is not None:
            say(f"making the read models of {row.seq + 1} events anew for this version; this is done once …")
        rebuild(ledger)
        ledger.catch_up()


def _sweep(ledger: VerifiedLedger, settings: Settings, clock: Clock) -> None:
    owner_url = locate(settings.home) if settings.database_url is None else None
    if owner_url is not None:
        tidy(ledger, owner_url, settings.home, now=clock())


def _replay(ledger: VerifiedLedger, relay: Relay) -> None:
    try:
        relay.drain(INDEX_WAIT_S)
        Scrubber(ledger, relay).glance()
    except CorrigendaError as error:
        # Standing needs no index: the ledger is ready, and a search says what is wrong with embedder or index.
        if error.code not in ("EMBEDDER_UNAVAILABLE", "INDEX_UNAVAILABLE"):
            raise
