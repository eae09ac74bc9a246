"""How a text enters a memory: remembered, published after it was held, or the right one after a wrong one."""

import msgspec

from gateway.deciding.base import Deciding, check_version, name_scope
from gateway.deciding.burying import refuse_buried
from gateway.scope.names import no_project
from gateway.shapes.requests import CorrectRequest, RememberRequest
from gateway.views.texts import correction_text, remembered_text
from gateway.writing.page import Append
from ledger.errors import refuse
from ledger.ids import is_ours
from ledger.memories import Correct, Publish, Remember, last_head
from ledger.message import ScopeIds
from ledger.scope import SEGMENTS


class Beginning(Deciding):
    """Decides what is remembered, published and corrected."""

    def remember(self, append: Append, request: RememberRequest) -> None:
        """Decide a text that is remembered: as a memory of its own, as the head of one without, or in place of one.

        Without a visibility or scope of its own it has that of the head that it replaces: nothing is widened unasked.
        """
        if self._project is None:
            raise no_project()
        project = append.name("project", self._names.root, self._project)
        scope = name_scope(append, project, request)
        lineage, predecessor = self._place(append, project, request)
        visibility, text = request.shown_to, remembered_text(request)
        if predecessor is None:
            self._check_beginning_anew(append, lineage)
        else:
            self._check_replacing(append, lineage, predecessor)
            old = append.state(lineage).revisions[predecessor]
            visibility = request.visibility or old.visibility
            scope = scope if _names_segments(request) else old.scope
            _check_segment(visibility, scope)
            if not text.subjects:  # what is said of somebody stays found by that one
                said = self._reader.text(append, lineage, predecessor)
                text = msgspec.structs.replace(text, subjects=said.subjects)
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
                visibility=visibility,
                text=text,
                predecessor=predecessor,
                held=request.hold,
            ),
        )

    def publish(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide that a held revision becomes active."""
        lineage, revision = self._held(append, reference)
        check_version(append, lineage, if_revision)
        append.decide(lineage, Publish(revision=revision, reason=reason))

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

    def _place(self, append: Append, project: str, request: RememberRequest) -> tuple[str, str | None]:
        """Return the lineage that a text is remembered in, and the revision that it replaces there."""
        if request.predecessor is None:
            return self._lineage_for(append, project, request.memory_id), None
        found, predecessor = self._references.revision(request.predecessor)
        if request.memory_id is not None and self._lineage_for(append, project, request.memory_id) != found:
            refuse(
                "INVALID_INPUT",
                "The predecessor is no revision of the memory that was named. Name the memory's own head, or leave the "
                "memory's id out.",
            )
        return found, predecessor

    def _held(self, append: Append, reference: str) -> tuple[str, str]:
        """Return the revision that is to be published: the one named, or the only one that a memory holds."""
        lineage, revision = self._references.locate(reference)
        if revision is not None:
            return lineage, revision
        seen = self._references.seen(append.state(lineage))
        held = [item.revision for item in seen if item.values.state == "processing"]
        if len(held) != 1:
            found = f"holds {len(held)}: {', '.join(held)}. Name one" if held else "holds none"
            refuse(
                "INVALID_TRANSITION",
                f"A memory stands for the revision that it holds, where that is one, and this memory {found}.",
                allowed=["publish"] if held else [],
            )
        return lineage, held[0]

    def _lineage_for(self, append: Append, project: str, memory: str | None) -> str:
        """Return the lineage that a text is remembered in: a new one, the one of that name, or one that is there."""
        if memory is None:
            return append.begin_lineage(f"mem_{self._mint()}")
        if is_ours(memory):
            return self._references.lineage(memory)
        lineage = append.name("memory", project, memory)
        if append.state(lineage).latest is not None:
            self._references.check(append.state(lineage), None)
        return lineage

    def _check_beginning_anew(self, append: Append, lineage: str) -> None:
        """Giving a memory a new head after a revocation overrules it, and needs the permission `correct`."""
        state = append.state(lineage)
        if state.head is not None or state.latest is None:
            return
        past = (last_head(state), state.revisions[state.latest])
        if any(item is not None and item.values.trust == "revoked" for item in past):
            self._actor.require("correct")

    def _check_replacing(self, append: Append, lineage: str, predecessor: str) -> None:
        """Replacing a head needs the permission `correct`, unless it is the actor's own and nobody vouched for it."""
        state = append.state(lineage)
        if predecessor != state.head:
            return  # refused by the lineage, whoever asks
        head = state.revisions[predecessor]
        if head.values.trust != "unverified" or self._reader.actor(head.content_seq) != append.actor:
            self._actor.require("correct")


def _names_segments(request: RememberRequest) -> bool:
    return any(getattr(request, segment) is not None for segment in SEGMENTS)


def _check_segment(visibility: str, scope: ScopeIds) -> None:
    """Refuse a scope that lacks the segment to which the visibility is bound."""
    if visibility in ("agent", "user", "session") and getattr(scope, visibility) is None:
        refuse(
            "INVALID_INPUT",
            f"The predecessor is visible to one {visibility} only, and the scope given names none. Name the "
            f"{visibility}, or give another visibility.",
        )
