"""The acts that call revisions into doubt, decide between them, and vouch for one."""

from collections.abc import Sequence

from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.writes import RevisionReceipt
from gateway.writing.page import Append
from gateway.writing.receipts import of_revision


class DisputingActs(UseCases):
    """Contest, promote, reject and admit."""

    def contest(
        self,
        revision: str,
        other: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """State that two revisions of one memory contradict each other: neither is served until one is promoted.

        Verified revisions and those of people take the permission `correct`. Errors: MEMORY_NOT_FOUND, INVALID_INPUT
        (with itself, or with another memory's), INVALID_TRANSITION, MEMORY_DELETED, MEMORY_REVOKED, NO_CHANGE (stated
        already), FORBIDDEN_ACTOR, STALE_REVISION.
        """
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {"revision": revision, "with": other, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.contest(append, (revision, other), reason, if_revision)

        return of_revision(self._write("contest", "contest", given, decide, idempotency_key, dry_run))

    def promote(
        self,
        revision: str,
        *,
        expected_active: str | None = None,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Let a contested revision win: those that it contradicted are rejected, and it is the head.

        `expected_active` is the head that it supersedes, None where the memory is expected to have none. Errors:
        MEMORY_NOT_FOUND, INVALID_TRANSITION (not contested), EXPECTED_ACTIVE_MISMATCH, MEMORY_DELETED, MEMORY_REVOKED,
        STALE_REVISION.
        """
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {
            "revision": revision, "expected_active": expected_active, "reason": reason, "if_revision": if_revision,
        }  # fmt: skip

        def decide(append: Append) -> None:
            self._decisions.promote(append, revision, expected_active, reason, if_revision)

        return of_revision(self._write("promote", "decide", given, decide, idempotency_key, dry_run))

    def reject_revision(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Turn down a held or contested revision; whom it contradicted stays contested.

        Errors: MEMORY_NOT_FOUND, INVALID_INPUT (active: correct or contest it), INVALID_TRANSITION, MEMORY_DELETED,
        STALE_REVISION.
        """
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.reject(append, revision, reason, if_revision)

        return of_revision(self._write("reject", "decide", given, decide, idempotency_key, dry_run))

    def admit(
        self,
        revision: str,
        *,
        reason: str,
        evidence: Sequence[str] = (),
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Vouch for an active revision of somebody else: it is verified. `evidence` are public hashes, `b3:…`.

        Errors: MEMORY_NOT_FOUND, SELF_APPROVAL_FORBIDDEN, EVIDENCE_NOT_FOUND, INVALID_TRANSITION (verified already),
        MEMORY_ALREADY_SUPERSEDED, MEMORY_DELETED, MEMORY_REVOKED, STALE_REVISION.
        """
        request = requests.parse(requests.AdmitRequest, reason=reason, evidence=listed(evidence))

        given = {
            "revision": revision, "evidence": list(request.evidence), "reason": reason, "if_revision": if_revision,
        }  # fmt: skip

        def decide(append: Append) -> None:
            self._decisions.admit(append, revision, request.evidence, request.reason, if_revision)

        return of_revision(self._write("admit", "admit", given, decide, idempotency_key, dry_run))
