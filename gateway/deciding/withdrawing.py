"""What is withdrawn, and restored by whoever may do what is undone."""

from gateway.deciding.base import Deciding, check_version
from gateway.deciding.burying import Graveyard
from gateway.writing.page import Append
from ledger.errors import refuse
from ledger.memories import Forget, Restore, Retire, Revoke, Withdrawal

_PERMISSION_OF_UNDOING = {"retire": "correct", "invalidate": "correct", "revoke": "revoke"}


class Withdrawing(Deciding):
    """Decides withdrawals, and what undoes them."""

    def retire(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide the retirement of the revision that is meant."""
        lineage, old = self._target(append, reference, if_revision)
        append.decide(lineage, Retire(revision=old, reason=reason))

    def forget(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide that the revision that is meant is forgotten, and not learned again."""
        lineage, old = self._target(append, reference, if_revision)
        self._actor.require(self._forgetting(append, lineage, old))
        append.decide(lineage, Forget(revision=old, reason=reason))
        self._graveyard.bury(append, lineage, old)

    def revoke(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide the revocation of the revision that is meant."""
        lineage, old = self._target(append, reference, if_revision)
        append.decide(lineage, Revoke(revision=old, reason=reason))

    def restore(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide that a withdrawal is undone; who may do that is whoever may do what is undone."""
        lineage, old = self._withdrawn(append, reference)
        check_version(append, lineage, if_revision)
        withdrawals = append.state(lineage).revisions[old].withdrawals
        if withdrawals:
            self._actor.require(self._undoing(append, lineage, old, withdrawals[-1]))
        append.decide(lineage, Restore(revision=old, reason=reason))
        if withdrawals and withdrawals[-1].act == "forget":
            self._graveyard.dig_up(append, lineage, old)

    @property
    def _graveyard(self) -> Graveyard:
        return Graveyard(self._keys, self._reader)

    def _forgetting(self, append: Append, lineage: str, revision: str) -> str:
        """Return the permission that forgetting a revision needs: one's own unverified text is only written."""
        item = append.state(lineage).revisions[revision]
        own = item.values.trust == "unverified" and self._reader.actor(item.content_seq) == append.actor
        return "write" if own and "correct" not in self._actor.permissions else "correct"

    def _undoing(self, append: Append, lineage: str, revision: str, undone: Withdrawal) -> str:
        """Return the permission that undoing a withdrawal needs. What somebody else forgot is theirs to overrule."""
        if undone.act != "forget":
            return _PERMISSION_OF_UNDOING[undone.act]
        mine = self._reader.actor(undone.position) == append.actor
        return self._forgetting(append, lineage, revision) if mine else "correct"

    def _withdrawn(self, append: Append, reference: str) -> tuple[str, str]:
        """Return the revision that `restore` means: the one named, or the memory's last withdrawn one."""
        lineage, revision = self._references.locate(reference)
        if revision is not None:
            return lineage, revision
        withdrawn = [item for item in self._references.seen(append.state(lineage)) if item.withdrawals]
        if not withdrawn:
            refuse(
                "INVALID_TRANSITION",
                "Nothing of this memory was withdrawn, so there is nothing to restore.",
                allowed=[],
            )
        return lineage, max(withdrawn, key=lambda item: item.withdrawals[-1].position).revision
