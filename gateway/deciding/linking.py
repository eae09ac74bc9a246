"""Links between memories."""

from gateway.deciding.base import Deciding
from gateway.graph import state_link, withdraw_link
from gateway.page import Append


class Linking(Deciding):
    """Decides links."""

    def link(self, append: Append, newer: str, older: str, reason: str | None) -> None:
        """Decide a link between the memories that are meant."""
        state_link(append, (self._references.lineage(newer), self._references.lineage(older)), reason)

    def unlink(self, append: Append, newer: str, older: str, reason: str) -> None:
        """Decide the withdrawal of a link between the memories that are meant."""
        withdraw_link(append, (self._references.lineage(newer), self._references.lineage(older)), reason)
