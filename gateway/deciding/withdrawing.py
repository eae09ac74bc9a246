"""What is withdrawn, and restored by whoever may do what is undone."""

from gateway.deciding.base import Deciding, check_version
from gateway.page import Append
from ledger.errors import refuse
from ledger.memories import Command, Restore, Retire, Revoke

_PERMISSION_OF_UNDOING = {"retire": "correct", "revoke": "revoke"}


class Withdrawing(Deciding):
    """Decides withdrawals, and what undoes them."""

    def retire(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide the retirement of the revision that is meant."""
        lineage, old = self._target(append, reference, if_revision)
        append.decide(lineage, Retire(revision=old, reason=reason))

    def revoke(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide the revocation of the revision that is meant."""
        lineage, old = self._target(append, reference, if_revision)
        append.decide(lineage, Revoke(revision=old, reason=reason))

    def restore(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide that a withdrawal is undone; who may do that is whoever may do what is undone."""
        lineage, old = self._withdrawn(append, reference)
        check_version(append, lineage, if_revision)
        undo = append.state(lineage).revisions[old].withdrawals
        if undo:
            self._actor.require(_PERMISSION_OF_UNDOING[undo[-1].act])
        command: Command = Restore(revision=old, reason=reason)
        append.decide(lineage, command)

    def _withdrawn(self, append: Append, reference: str) -> tuple[str, str]:
        """Return the revision that `restore` means: the one named, or the memory's last withdrawn one."""
        lineage, revision = self._references.locate(reference)
        if revision is not None:
            return lineage, revision
        withdrawn = [item for item in append.state(lineage).revisions.values() if item.withdrawals]
        if not withdrawn:
            refuse(
                "INVALID_TRANSITION",
                "Nothing of this memory was withdrawn, so there is nothing to restore.",
                allowed=[],
            )
        return lineage, max(withdrawn, key=lambda item: item.withdrawals[-1].position).revision
