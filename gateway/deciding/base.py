"""What every decision of the gateway needs: names to ids, references to revisions, versions to be held to."""

from collections.abc import Callable

from gateway.deciding.contradiction import Contradictions
from gateway.reading.reader import Reader
from gateway.scope.names import Names, References
from gateway.scope.permissions import Actor
from gateway.shapes.requests import ScopeRequest
from gateway.writing.page import Append
from gateway.writing.policies import Policies
from ledger.digest import LedgerKeys
from ledger.errors import refuse
from ledger.message import ScopeIds

_ORIGIN_OF_KIND = {"human": "human", "agent": "agent", "service": "agent"}


class Deciding:
    """Decides the acts of one actor in one project."""

    def __init__(
        self,
        *,
        keys: LedgerKeys,
        names: Names,
        references: References,
        policies: Policies,
        contradictions: Contradictions,
        reader: Reader,
        actor: Actor,
        project: str | None,
        mint: Callable[[], str],
    ) -> None:
        self._keys = keys
        self._names = names
        self._references = references
        self._policies = policies
        self._contradictions = contradictions
        self._reader = reader
        self._actor = actor
        self._project = project
        self._mint = mint

    def _origin(self, asked: str | None) -> str:
        if asked == "human" and self._actor.kind != "human":
            refuse(
                "FORBIDDEN_ACTOR",
                f"Only a person's text has the origin 'human', and the actor is of kind {self._actor.kind}. Leave the "
                "origin out.",
                permission="origin:human",
            )
        return asked or _ORIGIN_OF_KIND[self._actor.kind]

    def _target(self, append: Append, reference: str, if_revision: int | None) -> tuple[str, str]:
        lineage, revision = self._references.revision(reference)
        check_version(append, lineage, if_revision)
        return lineage, revision


def name_scope(append: Append, project: str, request: ScopeRequest) -> ScopeIds:
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


def check_version(append: Append, lineage: str, if_revision: int | None) -> None:
    version = append.state(lineage).version
    if if_revision is not None and if_revision != version:
        refuse(
            "STALE_REVISION",
            f"The memory was expected at version {if_revision} of its stream, and it is at {version}. Read it again.",
            expected=if_revision,
            found=version,
        )
