"""Links between memories."""

from gateway.deciding.base import Deciding, check_version
from gateway.reading.graph import state_link, withdraw_link
from gateway.writing.page import Append


class Linking(Deciding):
    """Decides links. The version that is expected is the newer memory's."""

    def link(self, append: Append, named: tuple[str, str], reason: str | None, if_revision: int | None) -> None:
        """Decide a link between the memories that are meant, the newer one first."""
        state_link(append, self._ends(append, named, if_revision), reason)

    def unlink(self, append: Append, named: tuple[str, str], reason: str, if_revision: int | None) -> None:
        """Decide the withdrawal of a link between the memories that are meant, the newer one first."""
        withdraw_link(append, self._ends(append, named, if_revision), reason)

    def _ends(self, append: Append, named: tuple[str, str], if_revision: int | None) -> tuple[str, str]:
        newer, older = (self._references.lineage(reference) for reference in named)
        check_version(append, newer, if_revision)
        return newer, older
