"""What is kept to prove something by."""

from gateway.deciding.base import Deciding
from gateway.scope.names import no_project
from gateway.shapes.requests import EvidenceRequest
from gateway.writing.page import Append
from ledger.errors import refuse
from ledger.evidence import EVIDENCE, AddEvidence, EvidenceAdded, EvidenceText


class Proving(Deciding):
    """Decides what evidence is kept."""

    def add_evidence(self, append: Append, request: EvidenceRequest, body: bytes | None) -> None:
        """Decide that bytes are kept, or mentioned if there are none; NO_CHANGE if they are already."""
        if self._project is None:
            raise no_project()
        project = append.name("project", self._names.root, self._project)
        stream = self._keys.evidence(project, request.hash)
        wish = AddEvidence(
            external=body is None,
            media_type=request.media_type,
            size=len(body or b""),
            text=EvidenceText(hash=request.hash, name=request.name, uri=request.uri),
        )
        append.decide_on(EVIDENCE, stream, wish)
        if not any(isinstance(event.facts, EvidenceAdded) for _, event in append.events):
            refuse("NO_CHANGE", "This evidence is kept already. Nothing was stored.")
        if body is not None:
            append.attach(stream, body)
