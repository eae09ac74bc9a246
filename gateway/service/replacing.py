"""The acts that let a text take another's place, or mend what is said about it: publish, supersede, patch."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.writes import RevisionReceipt
from gateway.writing.page import Append
from gateway.writing.receipts import of_revision

Text = str | Mapping[str, Any]  # Any: content, kind, tags and memory_id, checked by the schema


class ReplacingActs(UseCases):
    """Publish, supersede and patch."""

    def publish(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Let a held revision become active, in place of the head that it was held to replace.

        A memory stands for the one revision that it holds. Errors: INVALID_TRANSITION (it is not held),
        STALE_PREDECESSOR (the memory has another head by now).
        """
        requests.parse(requests.ReasonRequest, reason=reason)
        given = {"revision": revision, "reason": reason, "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.publish(append, revision, reason, if_revision)

        return of_revision(self._write("publish", "correct", given, decide, idempotency_key, dry_run))

    def supersede(
        self,
        revisions: Sequence[str],
        contents: Sequence[Text],
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RevisionReceipt:
        """Let texts take the place of memories' heads: a merge, a split, or both; all of it or nothing.

        The first text goes on with the first revision's memory, each further one begins a memory. A text is a string,
        or a mapping with `content` and, where it has them, `tags`, `kind` and `memory_id`. `if_revision` is that of the
        first revision's memory. Errors: as `correct`, for each revision; INVALID_INPUT (what is superseded together
        does not agree, or was named twice).
        """
        request = requests.parse(
            requests.SupersedeRequest,
            predecessors=listed(revisions),
            successors=_texts(contents),
            reason=reason,
        )
        given = {**request.model_dump(mode="json"), "if_revision": if_revision}

        def decide(append: Append) -> None:
            self._decisions.supersede(append, request, if_revision)

        return of_revision(self._write("supersede", "correct", given, decide, idempotency_key, dry_run))

    def patch(
        self,
        revision: str,
        *,
        reason: str | None = None,
        if_revision: int | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        **fields: Any,  # Any: checked by the schema
    ) -> RevisionReceipt:
        """Mend what was always wrong about a revision beside its content, which stays, as do its id and its place.

        `fields` are of tags, confidence, valid_from, valid_to, review_by and sources; None takes a value away. Equal
        metadata stores nothing: the outcome is `unchanged`. Errors: VALIDATION_FAILED (`content` is corrected, not
        patched), and as `correct`.
        """
        request = requests.parse(requests.PatchRequest, **{**fields, "reason": reason})
        given = {
            **request.model_dump(mode="json", include={*request.named, "reason"}),
            "revision": revision,
            "if_revision": if_revision,
        }

        def decide(append: Append) -> None:
            self._decisions.patch(append, revision, request, if_revision)

        return of_revision(self._write("patch", "correct", given, decide, idempotency_key, dry_run))


def _texts(contents: Any) -> Any:  # Any: what the schema is to check
    """Return texts as the schema takes them; what is no list stays, to be refused, as in `listed`."""
    found = listed(contents)
    if not isinstance(found, tuple):
        return found
    texts = cast(tuple[object, ...], found)
    return [{"content": item} if isinstance(item, str) else item for item in texts]
