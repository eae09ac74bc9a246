"""How several memories become one, or one several."""

from collections.abc import Sequence

from gateway.deciding.base import Deciding, check_version
from gateway.shapes.requests import SuccessorRequest, SupersedeRequest
from gateway.views.texts import successor_text
from gateway.writing.page import Append
from gateway.writing.succession import Successor, supersede
from ledger.errors import refuse
from ledger.ids import is_ours
from ledger.memories import RevisionState, RevisionText, live
from ledger.message import ScopeIds
from ledger.scope import SEGMENTS


class Replacing(Deciding):
    """Decides merges and splits."""

    def supersede(self, append: Append, request: SupersedeRequest, if_revision: int | None) -> None:
        """Decide that texts take the place of heads: all of it or nothing. `if_revision` is the first one's."""
        targets = [self._references.revision(reference) for reference in request.predecessors]
        if len(set(targets)) < len(targets):
            refuse("INVALID_INPUT", "A revision was named twice among the predecessors. Name each of them once.")
        check_version(append, targets[0][0], if_revision)
        olds = [live(append.state(lineage), revision, "superseded") for lineage, revision in targets]
        _check_agreement(olds)
        _check_first(request.successors[0], olds[0])
        lineages = self._lineages(append, targets[0][0], olds[0].scope.project, request.successors)
        texts = [self._reader.text(append, lineage, revision) for lineage, revision in targets]
        supersede(
            append,
            targets,
            [
                self._successor(lineage, item, olds[0], texts, request.reason)
                for lineage, item in zip(lineages, request.successors, strict=True)
            ],
            origin=self._origin(None),
            scope=_shared_scope(olds),
            reason=request.reason,
        )

    def _successor(
        self,
        lineage: str,
        item: SuccessorRequest,
        old: RevisionState,
        texts: Sequence[RevisionText],
        reason: str | None,
    ) -> Successor:
        return Successor(
            lineage=lineage,
            revision=f"rev_{self._mint()}",
            content=self._keys.content(old.scope.project, item.content),
            kind=item.kind or old.kind,
            text=successor_text(item.content, texts, reason=reason, tags=item.tags),
        )

    def _lineages(
        self, append: Append, first: str, project: str, successors: Sequence[SuccessorRequest]
    ) -> tuple[str, ...]:
        """Return each successor's lineage: the first predecessor's, then new ones, under the names given."""
        named = successors[0].memory_id
        if named is not None and self._known(append, project, named) != first:
            refuse(
                "INVALID_INPUT",
                "The first successor goes on with the first predecessor's memory, and another id was given for it. "
                "Leave that out, or change the order.",
            )
        found = [first, *(self._new(append, project, item.memory_id) for item in successors[1:])]
        if len(set(found)) < len(found):
            refuse("INVALID_INPUT", "One id was given to two successors. Give each of them one of its own.")
        return tuple(found)

    def _known(self, append: Append, project: str, memory: str) -> str | None:
        return memory if is_ours(memory) else append.page.find_name("memory", project, memory)

    def _new(self, append: Append, project: str, memory: str | None) -> str:
        if memory is None:
            return f"mem_{self._mint()}"
        lineage = memory if is_ours(memory) else append.name("memory", project, memory)
        if is_ours(memory) or append.state(lineage).version:
            refuse(
                "INVALID_INPUT",
                "Each successor but the first begins a memory of its own, and the id given for one is another memory's "
                "or an id that only the ledger makes. Give it a new name, or none.",
            )
        return lineage


def _check_agreement(olds: Sequence[RevisionState]) -> None:
    """Refuse a merge of what is not of one project, kind, visibility and of the segment that the visibility names."""
    for name in ("project", "kind", "visibility", "segment"):
        if len({_part(old, name) for old in olds}) > 1:
            what = f"{olds[0].visibility} to whom they are visible" if name == "segment" else name
            refuse(
                "INVALID_INPUT",
                f"What is superseded together has to agree in its {what}, and these revisions do not. Supersede those "
                "that agree, or retire the others.",
            )


def _part(old: RevisionState, name: str) -> str | None:
    match name:
        case "project":
            return old.scope.project
        case "segment":
            return getattr(old.scope, old.visibility) if old.visibility in SEGMENTS else None
        case _:
            return getattr(old, name)


def _check_first(first: SuccessorRequest, old: RevisionState) -> None:
    if first.kind not in (None, old.kind):
        refuse(
            "INVALID_INPUT",
            f"A memory keeps its kind for life, and the first successor goes on with one of kind {old.kind}. A kind of "
            "its own is for further successors.",
        )


def _shared_scope(olds: Sequence[RevisionState]) -> ScopeIds:
    """Return the scope of what succeeds some revisions: a segment in which they differ is none of it."""
    parts = {name: {getattr(old.scope, name) for old in olds} for name in SEGMENTS}
    shared = {name: next(iter(found)) if len(found) == 1 else None for name, found in parts.items()}
    return ScopeIds(project=olds[0].scope.project, **shared)
