"""What each act decides: names become ids, references become revisions, and the aggregate says yes or no.

Runs while the head is locked, on an append that is under decision. It reads and decides, and never stores anything.
"""

from collections.abc import Callable

from gateway.graph import state_link, withdraw_link
from gateway.names import Names, References, no_project
from gateway.page import Append
from gateway.permissions import Actor
from gateway.reading import Reader
from gateway.schemas import CorrectRequest, RememberRequest, ScopeRequest
from gateway.texts import correction_text, remembered_text
from ledger.digest import LedgerKeys
from ledger.errors import refuse
from ledger.ids import is_ours
from ledger.memories import Command, Correct, Remember, Restore, Retire, Revoke
from ledger.message import ScopeIds

_ORIGIN_OF_KIND = {"human": "human", "agent": "agent", "service": "agent"}
_PERMISSION_OF_UNDOING = {"retire": "correct", "revoke": "revoke"}


class Decisions:
    """Decides the acts of one actor in one project."""

    def __init__(
        self,
        *,
        keys: LedgerKeys,
        names: Names,
        references: References,
        reader: Reader,
        actor: Actor,
        project: str | None,
        mint: Callable[[], str],
    ) -> None:
        self._keys = keys
        self._names = names
        self._references = references
        self._reader = reader
        self._actor = actor
        self._project = project
        self._mint = mint

    def remember(self, append: Append, request: RememberRequest) -> None:
        """Decide a text that is remembered: in a lineage of its own, or as the new head of one that has none."""
        if self._project is None:
            raise no_project()
        project = append.name("project", self._names.root, self._project)
        scope = _name_scope(append, project, request)
        lineage = self._lineage_for(append, project, request.memory_id)
        self._check_beginning_anew(append, lineage)
        append.decide(
            lineage,
            Remember(
                revision=f"rev_{self._mint()}",
                content=self._keys.content(project, request.content),
                kind=request.kind,
                origin=self._origin(request.origin),
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
        _check_version(append, lineage, if_revision)
        undo = append.state(lineage).revisions[old].withdrawals
        if undo:
            self._actor.require(_PERMISSION_OF_UNDOING[undo[-1].act])
        command: Command = Restore(revision=old, reason=reason)
        append.decide(lineage, command)

    def link(self, append: Append, newer: str, older: str, reason: str | None) -> None:
        """Decide a link between the memories that are meant."""
        state_link(append, (self._references.lineage(newer), self._references.lineage(older)), reason)

    def unlink(self, append: Append, newer: str, older: str, reason: str) -> None:
        """Decide the withdrawal of a link between the memories that are meant."""
        withdraw_link(append, (self._references.lineage(newer), self._references.lineage(older)), reason)

    def _origin(self, asked: str | None) -> str:
        if asked == "human" and self._actor.kind != "human":
            refuse(
                "FORBIDDEN_ACTOR",
                f"Only a person's text has the origin 'human', and the actor is of kind {self._actor.kind}. Leave the "
                "origin out.",
                permission="origin:human",
            )
        return asked or _ORIGIN_OF_KIND[self._actor.kind]

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

    def _target(self, append: Append, reference: str, if_revision: int | None) -> tuple[str, str]:
        lineage, revision = self._references.revision(reference)
        _check_version(append, lineage, if_revision)
        return lineage, revision

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


def _name_scope(append: Append, project: str, request: ScopeRequest) -> ScopeIds:
    """Return a request's scope as ids, names assigned where they are new."""

    def named(kind: str, name: str | None) -> str | None:
        return None if name is None else append.name(kind, project, name)

    return ScopeIds(
        agent=named("agent", request.agent),
        project=project,
        session=named("session", request.session),
        task_family=named("task_family", request.task_family),
        user=named("user", request.user),
    )


def _check_version(append: Append, lineage: str, if_revision: int | None) -> None:
    version = append.state(lineage).version
    if if_revision is not None and if_revision != version:
        refuse(
            "STALE_REVISION",
            f"The memory was expected at version {if_revision} of its stream, and it is at {version}. Read it again.",
            expected=if_revision,
            found=version,
        )
