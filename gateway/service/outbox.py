"""The outbox as a person looks after it: what waits, what an embedder failed on, and what is to become of that."""

from collections.abc import Sequence

from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.replies.upkeep import Outbox, OutboxItem, OutboxRetry
from gateway.shapes.replies.writes import Receipt
from gateway.writing.page import Append
from ledger import parking
from ledger.errors import failure, refuse
from ledger.governance import LEDGER, SkipEffect
from ledger.limits import LIST_LIMIT_DEFAULT
from ledger.parking import FAILING, PARKED, SKIPPED, Failed
from ledger.store import OutboxRow
from projections.items import streams_of
from projections.replicas import upcoming, waiting


class OutboxUse(UseCases):
    """List what waits, and retry or skip what failed."""

    def outbox(
        self, *, parked: bool = False, limit: int = LIST_LIMIT_DEFAULT, min_position: str | None = None
    ) -> Outbox:
        """Return what failed, with any embedder, and what waits above the index of this home, oldest first.

        With `parked` only what waits for a person. `pending` and `parked` of the answer count all of it.
        """
        self._require("recover")
        request = requests.parse(requests.OutboxRequest, limit=limit)
        return self._read(min_position, lambda: self._outbox(parked, request.limit))

    def retry_outbox(self, positions: Sequence[int]) -> OutboxRetry:
        """Try what failed at these positions anew, and at once: as often as a first time before it is parked again.

        Errors: VALIDATION_FAILED, EVENT_NOT_FOUND (it asks nothing of the index), INVALID_TRANSITION (it has not
        failed, or was skipped), NOT_CONFIGURED (no embedder), EMBEDDER_UNAVAILABLE (it answers to nothing).
        """
        self._require("recover")
        request = requests.parse(requests.RetryRequest, positions=listed(positions))
        with self._writer.lock:
            self._ledger.catch_up()
            embedder = self._relay.embedder
            if embedder is None:
                refuse(
                    "NOT_CONFIGURED", "To try again takes an embedder, and there is none. Choose one, and repeat this."
                )
            wanted = sorted(set(request.positions))
            noted = parking.failures(self._ledger.store, embedder.signature)
            for position in wanted:
                self._failed_at(position, [one for one in noted if one.seq == position])
            self._relay.retry(wanted)
            self._relay.keep()
            left = {one.seq for one in parking.failures(self._ledger.store, embedder.signature) if _is_open(one)}
            position = self._reader.position
        return OutboxRetry(
            ok=not left & set(wanted),
            settled=tuple(one for one in wanted if one not in left),
            parked=tuple(one for one in wanted if one in left),
            position=position,
            incarnation=self._reader.incarnation,
        )

    def skip_outbox(
        self,
        position: int,
        *,
        reason: str,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Give up on what failed at a position: it stays out of the index, and an event says why.

        Skipping it again changes nothing. Errors: VALIDATION_FAILED, EVENT_NOT_FOUND, INVALID_TRANSITION, as
        `retry_outbox`.
        """
        request = requests.parse(requests.SkipRequest, position=position, reason=reason)

        def decide(append: Append) -> None:
            noted = parking.failures(self._ledger.store)
            failed = [one for one in noted if one.seq == request.position]
            for target in dict.fromkeys(one.signature for one in failed if _is_open(one) or one.state == SKIPPED):
                command = SkipEffect(first=-1, reason=request.reason, position=request.position, target=target)
                append.decide_on(LEDGER, self._names.root, command)
            if append.is_idle and not any(one.state == SKIPPED for one in failed):
                self._failed_at(request.position, failed)

        given = {"position": request.position, "reason": request.reason}
        return self._write("outbox_skip", "recover", given, decide, idempotency_key, dry_run)

    def _outbox(self, only_parked: bool, limit: int) -> Outbox:
        store = self._ledger.store
        failed = [one for one in parking.failures(store) if one.state == PARKED or (_is_open(one) and not only_parked)]
        known = streams_of(self._ledger, (one.revision for one in failed))
        items = [_failed(one, known.get(one.revision, "")) for one in failed[: limit + 1]]
        cursor, signature = self._relay.carried()
        if not only_parked:
            places = {one.place for one in failed}
            rows = upcoming(self._ledger, after=cursor, most=limit + 1 + len(failed))
            items += [_waiting(row) for row in rows if row[:2] not in places]
        pending, _ = waiting(store, signature, cursor)
        return Outbox(
            items=tuple(sorted(items, key=lambda item: (item.seq, item.id))[:limit]),
            truncated=len(items) > limit,
            pending=pending,
            parked=sum(1 for one in failed if one.state == PARKED),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def _failed_at(self, position: int, failed: Sequence[Failed]) -> None:
        """Refuse unless something failed at a position and is not decided yet."""
        if any(_is_open(one) for one in failed):
            return
        if any(one.state == SKIPPED for one in failed):
            raise failure(
                "INVALID_TRANSITION",
                f"What position {position} asks of the index was skipped for good. Remember its text anew if it is to "
                "be found after all.",
                position=position,
            )
        if not self._ledger.store.count("count_outbox_at", seq=position):
            raise failure(
                "EVENT_NOT_FOUND",
                f"At position {position} there should be an event that asks something of the index, and there is none. "
                "`corrigenda outbox list` names those that wait.",
                position=position,
            )
        if others := [one.signature for one in parking.failures(self._ledger.store) if one.seq == position]:
            raise failure(
                "INVALID_TRANSITION",
                f"What position {position} asks of the index failed with another embedder, {others[0]}, and has not "
                "failed with the configured one. Configure the other to try it again, or skip it.",
                position=position,
                embedder=others[0],
            )
        raise failure(
            "INVALID_TRANSITION",
            f"What position {position} asks of the index has not failed: it is in, or waits to be carried. Only what "
            "failed can be retried or skipped.",
            position=position,
        )


def _is_open(one: Failed) -> bool:
    return one.state in (FAILING, PARKED)


def _failed(one: Failed, stream: str) -> OutboxItem:
    return OutboxItem(
        seq=one.seq, id=one.revision, stream=stream, effect="put", state=one.state,
        attempts=one.attempts, code=one.code, at=one.at, embedder=one.signature,
    )  # fmt: skip


def _waiting(row: OutboxRow) -> OutboxItem:
    seq, revision, effect, stream = row
    return OutboxItem(
        seq=seq, id=revision, stream=stream, effect=effect, state="waiting",
        attempts=0, code=None, at=None, embedder=None,
    )  # fmt: skip
