"""The acts that withdraw what is remembered, and the one that undoes them."""

from typing import Literal, overload

from gateway.deciding.pruning import Prune
from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.writes import Impact, Pruned, RevisionReceipt
from gateway.writing.page import Append
from gateway.writing.receipts import of_revision


class WithdrawingActs(UseCases):
    """Retire, forget, revoke, restore and prune."""

    def retire(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Withdraw knowledge that no longer holds. Errors: as `correct`."""
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.retire(append, revision, reason, if_revision)

        return of_revision(self._write("retire", "correct", given, decide, idempotency_key, dry_run))

    def forget(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Withdraw a revision from view; from its sources no machine learns the text again until it is restored.

        It needs the permission `correct`, or `write` for one's own unverified revision. Errors: MEMORY_NOT_FOUND,
        MEMORY_DELETED (forgotten already), FORBIDDEN_ACTOR, STALE_REVISION.
        """
        if not {"correct", "write"} & self._actor.permissions:
            self._require("correct")
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.forget(append, revision, reason, if_revision)

        return of_revision(
            self._write(
                "forget",
                None,
                given,
                decide,
                idempotency_key,
                dry_run,
                warn=lambda: self._corrections.said_too(revision, forgotten=True),
            )
        )

    @overload
    def revoke(
        self,
        revision: str,
        *,
        reason: str,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> RevisionReceipt: ...

    @overload
    def revoke(
        self,
        revision: str,
        *,
        reason: str,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[True],
    ) -> Impact: ...

    def revoke(
        self,
        revision: str,
        *,
        reason: str,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt | Impact:
        """Withdraw trust in a revision: from this commit on no retrieval serves it.

        A dry run returns what would lose its trust, and the runs into which that was dispatched.
        Errors: MEMORY_REVOKED, MEMORY_DELETED, INVALID_TRANSITION.
        """
        requests.parse(requests.RequiredReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.revoke(append, revision, reason, if_revision)

        receipt = of_revision(
            self._write(
                "revoke",
                "revoke",
                given,
                decide,
                idempotency_key,
                dry_run,
                warn=lambda: self._corrections.said_too(revision),
            )
        )
        if dry_run:
            revisions = (receipt.revision_id,) if receipt.revision_id else ()
            return Impact(revisions=revisions, runs=self._read(None, lambda: self._retracing.runs(revisions)))
        return receipt

    def restore(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Undo the latest withdrawal of a revision; it needs the permission of the act that it undoes.

        What was forgotten, retired, invalidated or revoked last is undone first; of a revocation, the trust alone. A
        memory stands for its last revision that was withdrawn. Errors: INVALID_TRANSITION, EXPECTED_ACTIVE_MISMATCH
        (it would be a second head of its memory).
        """
        requests.parse(requests.ReasonRequest, reason=reason)

        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.restore(append, revision, reason, if_revision)

        return of_revision(self._write("restore", None, given, decide, idempotency_key, dry_run))

    def prune(
        self,
        older_than: str,
        *,
        include_untagged: bool = False,
        user: str | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Withdraw the project's learnings that machines made and nobody vouched for, once they are old enough.

        `older_than` is an age such as 90d (or h, w). Those that hold are retired, those that a correction had
        invalidated are forgotten. Untagged ones, of which is only known that they were imported, are spared unless
        `include_untagged`; with `user`, so are those of other users. It needs no idempotency key: repeated, it
        withdraws only what it had left. Errors: VALIDATION_FAILED, FORBIDDEN_ACTOR.
        """
        self._require("admin")
        request = requests.parse(
            requests.PruneRequest, older_than=older_than, include_untagged=include_untagged, user=user, reason=reason
        )
        self._need_project()
        self._wrote = True
        prune = Prune(
            writer=self._writer, ledger=self._ledger, names=self._names, references=self._references,
            reader=self._reader, actor=self._actor.name,
        )  # fmt: skip
        return prune.run(request, now=self._clock(), dry_run=dry_run)
