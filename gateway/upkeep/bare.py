"""What must answer when the ledger itself may be broken: it reads the tables as they lie and walks no chain.

Nothing here decides or serves a memory. With `create=False` it makes nothing: no home, no server, no ledger, no key.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from gateway.audit import anchors, checkpoints, signing
from gateway.embedded import Say, locate
from gateway.reading.following import Waiting
from gateway.reading.listing import Listing, Wanted
from gateway.scope.streams import find_streams
from gateway.settings import read_settings
from gateway.shapes.positions import no_event, parse_position, wait_until_at
from gateway.shapes.replies.audit import Verification
from gateway.shapes.replies.log import LogItem
from gateway.shapes.replies.models import IndexStatus, ModelsCheck, ModelsStatus
from gateway.shapes.replies.upkeep import Status
from gateway.traces import sweeping
from gateway.upkeep import checks, index_report, models, roles
from gateway.upkeep.survey import survey
from gateway.upkeep.tables import Role, Tables
from ledger import keys
from ledger.anchor import Anchor
from ledger.appending import PROJECTOR_VERSION
from ledger.census import holds_ledger
from ledger.clock import system_clock
from ledger.codec import read_entry
from ledger.digest import link
from ledger.errors import CorrigendaError, IntegrityError, failure
from ledger.governance import LedgerOpened
from ledger.opening import attach as attach_ledger
from ledger.opening import find_ledger, init_ledger
from ledger.store import Store
from ledger.verified import VerifiedLedger
from ledger.verify import verify
from migrations import LATEST
from projections.checking import Check
from projections.replicas import sweep

WALKED_EVENTS_MAX = 50_000
Document = dict[str, Any]  # Any: JSON


class BareGateway(Tables):
    """One tenant's tables, unchecked. A context manager."""

    # ---------------------------------------------------------------- the database

    def database_url(self, *, role: Role = "owner") -> str:
        """Return the connection string in use, of the embedded server that role's; another server has one URL only.

        Errors: UNAVAILABLE if the embedded server was never made.
        """
        return (self._as_owner() if role == "owner" else self._connected()).url

    def schema_current(self) -> str | None:
        """Return the version of the schema, or None if there is none."""
        return self._as_owner().schema_version()

    def schema_check(self) -> Document:
        """Return the schema's version if it is this program's, else SCHEMA_MISMATCH."""
        self._as_owner().check_schema()
        return {"revision": LATEST, "expected": LATEST, "ok": True}

    def migrate(self) -> Document:
        """Bring the schema to this program's version, as the owner. Errors: FORBIDDEN_ACTOR, SCHEMA_MISMATCH."""
        before = self.schema_current()
        if before is not None and before > LATEST:
            self._as_owner().check_schema()
        if before != LATEST:
            roles.migrate(self._as_owner().url)
        return {"before": before, "revision": self.schema_current(), **self._older_models()}

    def init(self, *, origin: str | None = None) -> Document:
        """Make schema, keys and the tenant's ledger where there are none; what is there stays.

        Where the ledger is new and the URL's role is not one to serve it, `next` and `sql` say what makes one that is.
        """
        migrated = self.migrate()
        tenant, files = self._settings.tenant, self._settings.keys
        is_new = find_ledger(self._as_owner(), tenant) is None
        ledger = init_ledger(
            self._as_owner(),
            tenant=tenant,
            files=files,
            clock=system_clock,
            anchors=self._settings.anchors,
            origin=origin,
        )
        ledger.close()
        return {
            "ledger": ledger.store.ledger,
            "origin": ledger.origin,
            "tenant": tenant,
            "revision": migrated["revision"],
            "ledger_key": str(files.ledger),
            "signing_key": str(files.signing),
            **(self._next() if is_new else {}),
        }

    # ---------------------------------------------------------------- the ledger as it lies

    def verify(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        progress: checkpoints.Progress | None = None,
        checkpoint: bytes | None = None,
        since: bytes | None = None,
        projections: bool = False,
    ) -> Verification:
        """Return what one pass over everything that is stored found, and whether it bears out anchor and checkpoint.

        It begins at the checkpoint `since` where the anchor bears that out, else at the first event. A ledger that
        bears out `checkpoint` may be trusted from there on: its anchor says so, and is built if there is none. With
        `projections` the read models are compared, too, with what the events make of them.
        """
        check = Check(self._opened()) if projections else None
        with anchors.found(self._opened(), self._settings.anchors) as anchor:
            report = verify(
                self._opened(),
                self._keys(),
                anchor=anchor,
                first=first or 0,
                last=last,
                progress=progress,
                checkpoint=checkpoint,
                since=since,
                witness=None if check is None else check.take,
            )
        if report.ok and checkpoint is not None:
            self._pin(checkpoint)
        found = msgspec.convert(report, Verification, from_attributes=True)
        return found if check is None else models.judged(found, check)

    def check_models(self, *, progress: checkpoints.Progress | None = None) -> ModelsCheck:
        """Return whether the read models are what the events make of them, in one pass over all events.

        Errors: SCHEMA_MISMATCH (another version wrote them), INTEGRITY_BROKEN (the ledger itself is broken).
        """
        check = Check(self._opened())
        with anchors.found(self._opened(), self._settings.anchors) as anchor:
            report = verify(self._opened(), self._keys(), anchor=anchor, progress=progress, witness=check.take)
        return models.checked(report, check)

    def models_status(self) -> ModelsStatus:
        """Return which generation of the read models is live, and whether another one is being built."""
        return models.status(self._opened())

    def sweep_outbox(self, *, dry_run: bool = False) -> Document:
        """Remove, as the maintainer, the rows of the outbox that no replica needs; what is removed can be made again.

        That is what every replica which was seen in the last seven days has carried, and what is older than that.
        Errors: FORBIDDEN_ACTOR (the URL's role is not a member of corrigenda_maintainer).
        """
        swept = sweep(Store(self._as_owner(), self._opened().ledger), dry_run=dry_run)
        return {"mark": swept.mark, "rows": swept.rows, "replicas": swept.replicas, "dry_run": dry_run}

    def sweep_traces(self, *, dry_run: bool = False) -> Document:
        """Remove the traces of retrievals that are older than their projects keep them (`trace_retention`).

        Errors: FORBIDDEN_ACTOR (the URL's role is not a member of corrigenda_maintainer), INTEGRITY_BROKEN.
        """
        store = Store(self._as_owner(), self._opened().ledger)
        with closing(self._verified()) as ledger:
            ledger.catch_up()
            traces = sweeping.sweep(ledger, store, now=system_clock(), dry_run=dry_run)
        return {"traces": traces, "dry_run": dry_run}

    def _pin(self, checkpoint: bytes) -> None:
        """Let trust in the anchor begin with a checkpoint that was borne out; an anchor is built if there is none."""
        with closing(self._verified()) as ledger:
            anchors.pin(ledger, checkpoint)

    def _verified(self) -> VerifiedLedger:
        """Return the ledger as this process may believe it; nothing has been followed yet."""
        settings = self._settings
        return attach_ledger(
            self._connected(),
            ledger=self._opened().ledger,
            tenant=settings.tenant,
            files=settings.keys,
            anchors=settings.anchors,
        )

    def sign_checkpoint(
        self,
        *,
        earlier: bytes | None = None,
        tiles: str | Path | None = None,
        progress: checkpoints.Progress | None = None,
    ) -> Document:
        """Return a signed checkpoint of the ledger, verified whole; it extends the last one that was signed here.

        It extends `earlier`, too, where that is given.

        `tiles` names a directory that is made to show the log up to there, for programs of others to read.
        """
        folder = None if tiles is None else Path(tiles).expanduser().absolute()
        settings = self._settings
        with signing.alone(settings.keys.signing), anchors.found(self._opened(), settings.anchors) as anchor:
            return checkpoints.sign(
                self._opened(), settings.keys, anchor=anchor, earlier=earlier, tiles=folder, progress=progress
            )

    def show_checkpoint(self, note: bytes) -> Document:
        """Return what a checkpoint of this ledger says, its signature checked."""
        return checkpoints.show(self._opened(), self._settings.keys, note)

    def compare_checkpoints(self, old: bytes, new: bytes) -> Document:
        """Return the proof, made from the ledger, that one checkpoint extends another."""
        return checkpoints.consistency(self._opened(), self._settings.keys, old, new)

    def public_key(self) -> Document:
        """Return the verifier key of this ledger's checkpoints, from event 0."""
        return checkpoints.public_key(self._opened(), self._settings.keys)

    def generate_keys(self) -> Document:
        """Make the key files that a ledger will need and that are not there yet; what is there stays as it is.

        Errors: LEDGER_UNVERIFIED (a file cannot be used; or one is missing while the database holds a ledger, which a
        new key could never check), UNAVAILABLE (a file cannot be written, or the database does not answer).
        """
        missing = checkpoints.missing_keys(self._settings.keys)
        if missing and self._holds_a_ledger():
            raise failure(
                "LEDGER_UNVERIFIED",
                "New keys are for a ledger that is yet to be made, and the database holds one already. Its own key was "
                f"expected at {missing[0]}: restore that file from its backup. No key was made.",
                file=str(missing[0]),
            )
        return checkpoints.make_keys(self._settings.keys)

    def list_keys(self) -> Document:
        """Return the ledger's keys and whether their files are here."""
        return checkpoints.list_keys(self._opened(), self._settings.keys)

    def raw(self, seq: int) -> bytes:
        """Return the stored bytes of one event, whatever they are. Errors: EVENT_NOT_FOUND."""
        found = self._opened().at([seq])
        if not found:
            raise no_event(seq, self._opened().head().seq)
        return found[0].envelope

    def reach(self, position: str) -> None:
        """Wait at most two seconds until the ledger has reached a position. Errors: VALIDATION_FAILED, UNAVAILABLE."""
        store = self._opened()
        wanted = parse_position(position, incarnation=store.head().incarnation)
        wait_until_at(wanted, lambda: store.head().seq)

    def log(
        self,
        *,
        limit: int | None = None,
        reverse: bool = False,
        **wanted: Any,  # Any: the fields of `listing.Wanted`
    ) -> Iterator[LogItem]:
        """Yield events newest first, or oldest first with `reverse`; bytes in no known form are shown as such.

        `wanted` holds the fields of `listing.Wanted`: after, before, type, actor, stream, since, until.
        """
        return Listing(self._opened()).items(Wanted(**wanted), limit=limit, reverse=reverse)

    def follow(
        self,
        *,
        waiting: Waiting,
        limit: int | None = None,
        **wanted: Any,  # Any: as for `log`
    ) -> Iterator[LogItem]:
        """Yield events oldest first, from the latest `limit` on, and then each that is committed, without end.

        `waiting` is told when the database stops answering; it is waited for. Errors: INTEGRITY_BROKEN (an event is
        missing, or the ledger has become shorter).
        """
        return Listing(self._opened()).follow(Wanted(**wanted), limit=limit, waiting=waiting)

    def last_of_streams(
        self,
        *,
        limit: int | None = None,
        reverse: bool = False,
        **wanted: Any,  # Any: as for `log`
    ) -> tuple[int, dict[str, int]]:
        """Return the last position there is, and where each stream is seen last in what `log` yields up to it."""
        return Listing(self._opened()).last_of_streams(Wanted(**wanted), limit=limit, reverse=reverse)

    def streams(self, word: str) -> tuple[str, ...]:
        """Return the streams that an id, the beginning of one, or a name may mean. Errors: as `find_streams`."""
        store, files = self._opened(), self._settings.keys
        project = self._settings.project
        return find_streams(store, lambda: keys.read_ledger_key(files.ledger).for_ledger(store.ledger), project, word)

    def status(self) -> Status:
        """Return one screen about the ledger and what is derived from it."""
        store = self._opened()
        chain, problem = self._chain(store.head().seq)
        settings = self._settings
        return survey(
            store, tenant=settings.tenant, home=settings.home, anchors=settings.anchors, chain=chain, problem=problem
        )

    def index_status(self) -> IndexStatus:
        """Return what the newest durable generation of the index holds, and how far it is behind."""
        return index_report.look(self._settings, self._opened())

    def doctor(self) -> list[tuple[str, bool, str, str | None]]:
        """Return what was looked at: name, whether it is well, what was found, what mends it."""
        return checks.run(self._settings, self._connected, self._opened, self._keys, self._chain)

    # ---------------------------------------------------------------- inside

    def _older_models(self) -> Document:
        """Return what is to be done before the tenant's ledger can be written, if older projectors wrote its models."""
        with suppress(CorrigendaError):  # what else is wrong with it is not for a migration to say
            ledger = find_ledger(self._as_owner(), self._settings.tenant)
            if ledger is not None and Store(self._as_owner(), ledger).head().projector < PROJECTOR_VERSION:
                return {"next": "run `corrigenda projections rebuild`: until then nothing can be written"}
        return {}

    def _next(self) -> Document:
        """Return what is to be done before this ledger can be served, if the URL's role is not one to serve it."""
        if self._server is not None or not roles.excess(self._connected().own_role()):
            return {}
        return {"next": roles.NEXT, "sql": roles.login_statements()}

    def _holds_a_ledger(self) -> bool:
        """Report whether the database holds a ledger, anybody's; a server of ours that was never made holds none."""
        if self._settings.database_url is None and locate(self._settings.home) is None:
            return False
        if self.schema_current() is None:
            return False
        return holds_ledger(self._connected())

    def _chain(self, last: int) -> tuple[str, str | None]:
        """Return what a walk of the chain says, where it is short enough to be walked for a status."""
        if last >= WALKED_EVENTS_MAX:
            return "unchecked", "the chain is long; `corrigenda verify` checks it"
        found = self._keys()
        if found is None:
            return "unverified", "there is no usable ledger key, so nothing can be checked"
        first = self._opened().at([0])
        if first and not found.is_sealed(link(first[0].envelope), first[0].seal):
            return "unverified", "the ledger key is another ledger's, or event 0 is not what was written"
        try:
            opened = self._opening()
            anchor = Anchor.in_memory(ledger=self._opened().ledger, origin=opened.origin)
            VerifiedLedger(self._opened(), found, opened.origin, anchor).catch_up()
        except IntegrityError as error:
            return "broken", error.message
        return "ok", None

    def _opening(self) -> LedgerOpened:
        found = self._opened().at([0])
        if found:
            facts = read_entry(found[0].envelope, found[0].seal, position=0).envelope.facts
            if isinstance(facts, LedgerOpened):
                return facts
        raise failure("INTEGRITY_BROKEN", "Event 0 is not the opening of a ledger.", position=0, check="chain")


def open_bare(
    *,
    database_url: str | None = None,
    home: str | Path | None = None,
    tenant: str | None = None,
    project: str | None = None,
    create: bool = True,
    say: Say | None = None,
) -> BareGateway:
    """Open the database without walking the chain. With `create=False` nothing is made or migrated anywhere."""
    settings = read_settings(database_url=database_url, home=home, tenant=tenant, project=project)
    return BareGateway(settings, create=create, say=say)
