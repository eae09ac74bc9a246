"""How a text enters a memory: remembered, or the right one after a wrong one."""

from gateway.deciding.base import Deciding, name_scope
from gateway.deciding.burying import refuse_buried
from gateway.names import no_project
from gateway.page import Append
from gateway.schemas import CorrectRequest, RememberRequest
from gateway.texts import correction_text, remembered_text
from ledger.ids import is_ours
from ledger.memories import Correct, Remember


class Beginning(Deciding):
    """Decides what is remembered and corrected."""

    def remember(self, append: Append, request: RememberRequest) -> None:
        """Decide a text that is remembered: in a lineage of its own, or as the new head of one that has none."""
        if self._project is None:
            raise no_project()
        project = append.name("project", self._names.root, self._project)
        scope = name_scope(append, project, request)
        lineage = self._lineage_for(append, project, request.memory_id)
        self._check_beginning_anew(append, lineage)
        origin = self._origin(request.origin)
        refuse_buried(
            append, self._keys, project=project, origin=origin, content=request.content, sources=request.sources
        )
        append.decide(
            lineage,
            Remember(
                revision=f"rev_{self._mint()}",
                content=self._keys.content(project, request.content),
                kind=request.kind,
                origin=origin,
                scope=scope,
                visibility=request.shown_to,
                text=remembered_text(request),
            ),
        )

    def correct(self, append: Append, reference: str, request: CorrectRequest, if_revision: int | None) -> None:
        """Decide a correction of the revision that is meant."""
        lineage, old = self._target(append, reference, if_revision)
        project = append.state(lineage).revisions[old].scope.project
        append.decide(
            lineage,
            Correct(
                revision=old,
                successor=f"rev_{self._mint()}",
                content=self._keys.content(project, request.content),
                origin=self._origin(None),
                text=correction_text(request, self._reader.text(append, lineage, old)),
            ),
        )

    def _lineage_for(self, append: Append, project: str, memory: str | None) -> str:
        """Return the lineage that a text is remembered in: a new one, the one of that name, or one that is there."""
        if memory is None:
            return f"mem_{self._mint()}"
        return self._references.lineage(memory) if is_ours(memory) else append.name("memory", project, memory)

    def _check_beginning_anew(self, append: Append, lineage: str) -> None:
        """Giving a memory a new head after a revocation overrules it, and needs the permission `correct`."""
        state = append.state(lineage)
        latest = state.revisions[state.latest] if state.latest else None
        if latest is not None and state.head is None and latest.values.trust == "revoked":
            self._actor.require("correct")
