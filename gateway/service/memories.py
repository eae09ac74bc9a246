"""The acts on memories: each checks its request, and is one append."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.writes import Receipt, RevisionReceipt
from gateway.writing.page import Append
from gateway.writing.receipts import of_revision


class MemoryActs(UseCases):
    """Remember, correct and link."""

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
        subjects: Sequence[str] = (),
        applies: Mapping[str, Any] | None = None,  # Any: JSON
        institutional: Mapping[str, Any] | None = None,  # Any: JSON
        run: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        task_family: str | None = None,
        visibility: str | None = None,
        quote: str | None = None,
        conversation: str | None = None,
        memory_id: str | None = None,
        predecessor: str | None = None,
        hold: bool = False,
        reason: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Store a text as a new memory, or under `memory_id` as the new head of one that has none.

        With `predecessor` it takes the place of that head; with `hold` it waits to be published, and changes nothing
        until then. A learning of the origin `llm_extracted` needs its `user`, and a `quote` that stands in the
        `conversation`; neither of the two is stored. `applies` are the conditions under which a search serves it:
        `{"match": "all"|"any", "conditions": [{"id", "kind": "context", "field", "value"} | {"id", "kind": "topic",
        "value"}]}`. `institutional` makes it a position or a procedure; `review_by` is then its review's `expires_at`.
        `subjects` are the persons whom it concerns, by names of the caller's choice: what is said about them is found
        by these, whoever corrects it later. A text that takes a predecessor's place has that one's unless it names its
        own. The receipt warns (`scope_spelling`) where a part of the scope is known in another spelling, too.

        Errors: VALIDATION_FAILED, FORBIDDEN_ACTOR (a head that is not the actor's own unverified one),
        STALE_PREDECESSOR (the memory has another head), INVALID_INPUT, NO_CHANGE, MEMORY_NOT_FOUND (an id of ours that
        is none of this project's memories), MEMORY_ALREADY_SUPERSEDED and MEMORY_DELETED (the memory has ended, or a
        machine learns what was forgotten).
        """
        given = {
            "content": content, "kind": kind, "tags": listed(tags), "confidence": confidence, "origin": origin,
            "valid_from": valid_from, "valid_to": valid_to, "review_by": review_by, "sources": listed(sources),
            "applies": applies, "institutional": institutional,
            "run": run, "agent": agent, "user": user, "session": session, "task_family": task_family,
            "visibility": visibility, "quote": quote, "conversation": conversation, "memory_id": memory_id,
            "predecessor": predecessor, "hold": hold,
            "reason": reason,
        }  # fmt: skip
        if subjects != ():  # a request without any is the one that it always was, for its idempotency key's sake
            given["subjects"] = listed(subjects)
        request = requests.parse(requests.RememberRequest, **given)
        return of_revision(
            self._write(
                "remember",
                "write",
                given,
                lambda append: self._decisions.remember(append, request),
                idempotency_key,
                dry_run,
                lambda: self._spellings.warnings(self._names.root, self._project, request),
            )
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
    ) -> RevisionReceipt:
        """Replace a memory's head by a text whose meaning is right.

        Errors: MEMORY_NOT_FOUND, MEMORY_ALREADY_SUPERSEDED, MEMORY_DELETED, MEMORY_REVOKED, NO_CHANGE, STALE_REVISION.
        """
        request = requests.parse(requests.CorrectRequest, content=content, reason=reason)
        given = {"revision": revision, "content": content, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.correct(append, revision, request, if_revision)

        return of_revision(self._write("correct", "correct", given, decide, idempotency_key, dry_run))

    def link(
        self,
        newer: str,
        older: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """State that one memory supersedes another; neither's states change. `if_revision` is that of the newer.

        Errors: INVALID_INPUT (to itself, or to another project's), NO_CHANGE (stated already), INVALID_TRANSITION (it
        would close a cycle), STALE_REVISION.
        """
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {"newer": newer, "older": older, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.link(append, (newer, older), reason, if_revision)

        return self._write("link", "correct", given, decide, idempotency_key, dry_run)

    def unlink(
        self,
        newer: str,
        older: str,
        *,
        reason: str,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Withdraw a link. `if_revision` is that of the newer.

        Errors: MEMORY_NOT_FOUND (no such link), STALE_REVISION.
        """
        requests.parse(requests.RequiredReasonRequest, reason=reason)

        given = {"newer": newer, "older": older, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.unlink(append, (newer, older), reason, if_revision)

        return self._write("unlink", "correct", given, decide, idempotency_key, dry_run)
