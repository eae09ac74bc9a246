"""How what is known about a revision changes while its text stays."""

from gateway.deciding.base import Deciding
from gateway.shapes.requests import PatchRequest
from gateway.views.texts import metadata_of, patched
from gateway.writing.page import Append
from ledger.memories import MetadataPatch, Patch


class Mending(Deciding):
    """Decides patches."""

    def patch(self, append: Append, reference: str, request: PatchRequest, if_revision: int | None) -> None:
        """Decide what a revision's metadata is from now on; nothing, if it is that already."""
        lineage, revision = self._target(append, reference, if_revision)
        append.about = lineage, revision
        before = metadata_of(self._reader.text(append, lineage, revision))
        patch = MetadataPatch(before=before, after=patched(request, before), reason=request.reason)
        append.decide(lineage, Patch(revision=revision, patch=patch))
