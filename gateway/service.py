"""The use cases: one short method each. A door translates into them and out of them, and does nothing else.

Every write is one append (`writing`), every answer is made from verified entries (`reading`, `retrieval`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from gateway import schemas
from gateway.deciding import Decisions
from gateway.importing import PepImport, Progress
from gateway.names import Names, References, no_project
from gateway.page import Append
from gateway.permissions import Actor
from gateway.positions import parse_position, wait_until_at
from gateway.reading import NOBODY, Reader
from gateway.replies import (
    EventDetail,
    Explanation,
    History,
    ImportReport,
    Lineage,
    LogItem,
    Receipt,
    Recovery,
    Revision,
    Search,
)
from gateway.retrieval import Retrieval
from gateway.states import States
from gateway.writing import Wish, Writer
from ledger.clock import Clock
from ledger.committer import Committer
from ledger.errors import refuse
from ledger.verified import VerifiedLedger
from projections.recovery import recover
from projections.relay import Item, Relay

EVENTS_PAGE = 1_000
REFERENCES = frozenset({"revision", "newer", "older"})  # the fields of a request that name something


class Gateway:
    """One ledger, as one actor uses it. A context manager; safe to share between threads."""

    def __init__(
        self,
        ledger: VerifiedLedger,
        relay: Relay,
        committer: Committer,
        *,
        actor: Actor,
        project: str | None,
        clock: Clock,
        on_close: Callable[[], None],
    ) -> None:
        states = States(ledger)
        self._ledger = ledger
        self._relay = relay
        self._actor = actor
        self._project = project
        self._names = Names(ledger)
        self._states = states
        self._references = References(ledger, self._names, states, project)
        self._writer = Writer(ledger, committer, self._names, states, clock)
        self._reader = Reader(ledger, self._names, states, self._references)
        self._decisions = Decisions(
            keys=ledger.keys,
            names=self._names,
            references=self._references,
            reader=self._reader,
            actor=actor,
            project=project,
            mint=self._writer.mint,
        )
        self._retrieval = Retrieval(ledger, relay, self._reader, self._names.show)
        self._on_close = on_close
        self._closed = False
        self._wrote = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Bring the index up to date for at most five seconds, keep it, and let go of the database."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        with self._writer.lock:
            try:
                self._relay.close(wrote=self._wrote)
            finally:
                self._ledger.close()
                self._on_close()

    # ---------------------------------------------------------------- writes

    def remember(
        self,
        content: str,
        *,
        kind: str = "fact",
        tags: Sequence[str] = (),
        confidence: str | None = None,
        origin: str | None = None,
        valid_from: str | None = None,
        valid_to: str | None = None,
        review_by: str | None = None,
        sources: Sequence[str] = (),
        run: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        task_family: str | None = None,
        visibility: str | None = None,
        memory_id: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Store a text as a new memory, or under `memory_id` as the new head of one that has none.

        Errors: VALIDATION_FAILED, FORBIDDEN_ACTOR, STALE_PREDECESSOR (the memory has a head), INVALID_INPUT,
        MEMORY_NOT_FOUND (an id of ours that is none of this project's memories).
        """
        given = {
            "content": content, "kind": kind, "tags": _listed(tags), "confidence": confidence, "origin": origin,
            "valid_from": valid_from, "valid_to": valid_to, "review_by": review_by, "sources": _listed(sources),
            "run": run, "agent": agent, "user": user, "session": session, "task_family": task_family,
            "visibility": visibility, "memory_id": memory_id, "reason": reason,
        }  # fmt: skip
        request = schemas.parse(schemas.RememberRequest, **given)
        return self._write(
            "remember",
            "write",
            given,
            lambda append: self._decisions.remember(append, request),
            idempotency_key,
            dry_run,
        )

    def correct(
        self,
        revision: str,
        content: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Replace a memory's head by a text whose meaning is right.

        Errors: MEMORY_NOT_FOUND, MEMORY_ALREADY_SUPERSEDED, MEMORY_DELETED, MEMORY_REVOKED, NO_CHANGE, STALE_REVISION.
        """
        request = schemas.parse(schemas.CorrectRequest, content=content, reason=reason)
        given = {"revision": revision, "content": content, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.correct(append, revision, request, if_revision)

        return self._write("correct", "correct", given, decide, idempotency_key, dry_run)

    def retire(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Withdraw knowledge that no longer holds. Errors: as `correct`."""
        schemas.parse(schemas.ReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.retire(append, revision, reason, if_revision)

        return self._write("retire", "correct", given, decide, idempotency_key, dry_run)

    def revoke(
        self,
        revision: str,
        *,
        reason: str,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Withdraw trust in a revision: from this commit on no retrieval serves it. Errors: MEMORY_REVOKED."""
        schemas.parse(schemas.RequiredReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.revoke(append, revision, reason, if_revision)

        return self._write("revoke", "revoke", given, decide, idempotency_key, dry_run)

    def restore(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Undo the latest retirement or revocation; it needs the permission of the act that it undoes.

        A memory stands for its last revision that was withdrawn. Errors: INVALID_TRANSITION,
        EXPECTED_ACTIVE_MISMATCH (the memory has another head by now).
        """
        schemas.parse(schemas.ReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.restore(append, revision, reason, if_revision)

        return self._write("restore", None, given, decide, idempotency_key, dry_run)

    def link(
        self,
        newer: str,
        older: str,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """State that one memory supersedes another; neither's states change.

        Errors: INVALID_INPUT (to itself, or to another project's), NO_CHANGE (stated already), INVALID_TRANSITION (it
        would close a cycle).
        """
        schemas.parse(schemas.ReasonRequest, reason=reason)

        given = {"newer": newer, "older": older, "reason": reason}

        def decide(append: Append) -> None:
            self._decisions.link(append, newer, older, reason)

        return self._write("link", "correct", given, decide, idempotency_key, dry_run)

    def unlink(
        self,
        newer: str,
        older: str,
        *,
        reason: str,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Withdraw a link. Errors: MEMORY_NOT_FOUND (no such link)."""
        schemas.parse(schemas.RequiredReasonRequest, reason=reason)

        given = {"newer": newer, "older": older, "reason": reason}

        def decide(append: Append) -> None:
            self._decisions.unlink(append, newer, older, reason)

        return self._write("unlink", "correct", given, decide, idempotency_key, dry_run)

    def import_peps(
        self, path: str | Path, *, on_error: str = "stop", progress: Progress | None = None
    ) -> ImportReport:
        """Import a history of Python Enhancement Proposals; repeating it stores nothing twice.

        Errors: VALIDATION_FAILED (not a whole gzip file of JSON lines: nothing was stored; or a bad row, which stops
        the import before it and everything behind it unless `on_error` is `skip`).
        """
        self._require("admin")
        with self._writer.lock:
            run = PepImport(
                self._writer, self._ledger, Path(path),
                project=self._need_project(), actor=self._actor.name, on_error=on_error,
            )  # fmt: skip
            report = run.run(progress)
            self._relay.drain(progress=progress)
            self._relay.keep()
        return report

    def recover(self, *, check_only: bool = False, dry_run: bool = False, progress: Progress | None = None) -> Recovery:
        """Bring the index to the ledger's head and say what it took; or, with `check_only`, what it would take."""
        self._require("recover")
        with self._writer.lock:
            self._ledger.catch_up()
            done = recover(self._relay, check_only=check_only or dry_run, progress=progress)
        return Recovery(
            ok=True,
            replayed=done.replayed,
            skipped=done.skipped,
            parked=0,
            repaired=0,
            index={"action": done.action, "why": done.why},
            claims=(),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    # ---------------------------------------------------------------- reads

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        min_trust: str = "unverified",
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        task_family: str | None = None,
        min_position: str | None = None,
    ) -> Search:
        """Return the k nearest memories that the ledger confirms at this moment, best first.

        Errors: VALIDATION_FAILED; UNAVAILABLE if `min_position` is not reached within two seconds.
        """
        self._require("read")
        request = schemas.parse(
            schemas.SearchRequest, query=query, k=k, min_trust=min_trust, kinds=_listed(kinds), tags=_listed(tags),
            agent=agent, user=user, session=session, task_family=task_family,
        )  # fmt: skip
        self._need_project()
        self._reach(min_position)
        with self._writer.lock:
            self._ledger.catch_up()
            # A project without a name yet has no memories, and still sees what the whole tenant may see.
            return self._retrieval.search(request, self._reader.scope(self._references.project or NOBODY, request))

    @property
    def index(self) -> Relay:
        """Return this process's index replica, for recovery, diagnosis and tests."""
        return self._relay

    def neighbours(self, query: str, *, k: int = 5) -> list[tuple[Item, float]]:
        """Return what the index alone says is near, best first: confirmed by nobody, and never an answer."""
        self._require("read")
        with self._writer.lock:
            project = self._references.project
            request = schemas.parse(schemas.SearchRequest, query=query, k=k)
            return [] if project is None else self._retrieval.neighbours(query, self._reader.scope(project, request), k)

    def show(self, reference: str, *, min_position: str | None = None) -> Revision:
        """Return one revision; a memory stands for its head, or its latest revision while it has none."""
        return self._read_named(reference, min_position, self._reader.show)

    def explain(self, reference: str, *, min_position: str | None = None) -> Explanation:
        """Return one revision with the story of its lineage."""
        return self._read_named(reference, min_position, self._reader.explain)

    def history(self, reference: str, *, min_position: str | None = None) -> History:
        """Return every revision of a memory, in version order, whichever of its ids is given."""
        return self._read_named(reference, min_position, self._reader.history)

    def lineage(
        self,
        reference: str,
        *,
        up: bool | None = None,
        down: bool | None = None,
        depth: int | None = None,
        min_position: str | None = None,
    ) -> Lineage:
        """Return the graph around a memory: what supersedes it (`up`), what it supersedes (`down`); both by default."""
        both = not up and not down
        return self._read_named(
            reference,
            min_position,
            lambda known: self._reader.lineage(known, up=up or both, down=down or both, depth=depth),
        )

    def reach(self, position: str) -> None:
        """Wait until the ledger has reached a position, `SEQ` or `INC.SEQ`. Errors: VALIDATION_FAILED, UNAVAILABLE."""
        self._reach(position)

    def show_event(self, seq: int) -> EventDetail:
        """Return one event, verified, with its facts and payload. Errors: EVENT_NOT_FOUND."""
        return self._read(None, lambda: self._reader.event(seq))

    def raw(self, seq: int) -> bytes:
        """Return the hashed bytes of one event, verified. Errors: EVENT_NOT_FOUND."""
        return self._read(None, lambda: self._reader.raw(seq))

    def complete(self, prefix: str) -> tuple[str, ...]:
        """Return the ids of ours in the project that begin with `prefix`, sorted."""
        return self._read(None, lambda: self._reader.complete(prefix))

    def events(self, *, after: int = -1) -> Iterator[LogItem]:
        """Yield every event above `after` up to the present head, oldest first, verified."""
        self._require("read")
        with self._writer.lock:
            last = self._ledger.catch_up()
        for first in range(max(after, -1) + 1, last + 1, EVENTS_PAGE):
            with self._writer.lock:
                page = self._reader.log(first, min(first + EVENTS_PAGE, last + 1))
            yield from page

    # ---------------------------------------------------------------- shared

    def _write(
        self,
        operation: str,
        permission: str | None,
        given: Mapping[str, Any],  # Any: JSON
        decide: Callable[[Append], None],
        key: str | None,
        dry_run: bool,
    ) -> Receipt:
        """Carry out one act. Without a `permission` it is for `decide` to say which one the act needs."""
        self._check_open()
        if permission is not None:
            self._require(permission)
        schemas.parse(schemas.Who, actor=self._actor.name, project=self._project, idempotency_key=key)
        for name in REFERENCES & given.keys():
            schemas.parse(schemas.ReferenceRequest, id=given[name])
        request = {"project": self._project, **given}
        wish = Wish(
            operation=operation, actor=self._actor.name, request=request, key=key, decide=decide, dry_run=dry_run
        )  # fmt: skip
        self._wrote = True
        return self._writer.write(wish)

    def _read_named(
        self, reference: str, min_position: str | None, answer: Callable[[str], Any]
    ) -> Any:  # Any: the reader's own reply
        self._require("read")
        request = schemas.parse(schemas.ReferenceRequest, id=reference)
        return self._read(min_position, lambda: answer(request.id))

    def _read(self, min_position: str | None, answer: Callable[[], Any]) -> Any:  # Any: the reader's own reply
        self._require("read")
        self._reach(min_position)
        with self._writer.lock:
            self._ledger.catch_up()
            return answer()

    def _reach(self, min_position: str | None) -> None:
        """Wait at most two seconds for a position that somebody has announced. The caller holds no lock."""
        if min_position is not None:
            self._caught_up()
            position = parse_position(min_position, incarnation=self._reader.incarnation)
            wait_until_at(position, self._caught_up)

    def _caught_up(self) -> int:
        with self._writer.lock:
            return self._ledger.catch_up()

    def _require(self, permission: str) -> None:
        self._check_open()
        self._actor.require(permission)

    def _check_open(self) -> None:
        if self._closed:
            refuse("UNAVAILABLE", "This gateway was closed, and does nothing any more. Open another one.")

    def _need_project(self) -> str:
        if self._project is None:
            raise no_project()
        return self._project


def _listed(values: Sequence[str]) -> Sequence[str]:
    """Return a list as a tuple; a single string stays one, to be refused: it is no list of its letters."""
    return values if isinstance(values, str) else tuple(values)
