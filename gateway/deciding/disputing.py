"""What is contradicted, decided between, and vouched for. Nobody vouches for a text of their own."""

from collections.abc import Sequence

from gateway.deciding.base import Deciding
from gateway.writing.page import Append
from gateway.writing.policies import VERIFIER_IS_PRODUCER
from ledger.errors import refuse
from ledger.evidence import EVIDENCE
from ledger.memories import Admission, Admit, Contest, Promote, Reject


class Disputing(Deciding):
    """Decides contradictions and admissions."""

    def contest(self, append: Append, references: tuple[str, str], reason: str | None, if_revision: int | None) -> None:
        """Decide that the two revisions that are meant contradict each other."""
        lineage, first = self._target(append, references[0], if_revision)
        other, second = self._references.revision(references[1])
        if other != lineage:
            refuse(
                "INVALID_INPUT",
                "Only revisions of one memory can be contested with each other, and these two are of different ones. "
                "Correct the wrong one, or link the memories (`corrigenda memories link`).",
            )
        for revision in (first, second):
            item = append.state(lineage).revisions[revision]
            if item.values.trust == "verified" or item.origin == "human":
                self._actor.require("correct")
        append.decide(lineage, Contest(first_revision=first, second_revision=second, reason=reason))

    def promote(
        self, append: Append, reference: str, expected: str | None, reason: str | None, if_revision: int | None
    ) -> None:
        """Decide that the revision that is meant wins, over the head that is expected, if one is."""
        lineage, revision = self._target(append, reference, if_revision)
        head = None if expected is None else self._expected(append, expected)
        append.decide(lineage, Promote(revision=revision, expected=head, reason=reason))

    def reject(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide that the revision that is meant is turned down."""
        lineage, revision = self._target(append, reference, if_revision)
        append.decide(lineage, Reject(revision=revision, reason=reason))

    def admit(
        self, append: Append, reference: str, evidence: Sequence[str], reason: str, if_revision: int | None
    ) -> None:
        """Decide that the revision that is meant is verified."""
        lineage, revision = self._target(append, reference, if_revision)
        item = append.state(lineage).revisions[revision]
        self._check_not_own(append, item.scope.project, item.content_seq)
        self._check_evidence(append, item.scope.project, evidence)
        append.decide(lineage, Admit(revision=revision, admission=Admission(evidence=tuple(evidence), reason=reason)))

    def _expected(self, append: Append, reference: str) -> str:
        """Return the revision that is expected as head: a memory without one is no head of any."""
        lineage, revision = self._references.locate(reference)
        return revision or append.state(lineage).head or reference

    def _check_not_own(self, append: Append, project: str, position: int) -> None:
        if self._reader.actor(position) != append.actor:
            return
        if not self._policies.within(append, VERIFIER_IS_PRODUCER, project):
            refuse(
                "SELF_APPROVAL_FORBIDDEN",
                "A revision is admitted by somebody else than its author, and this one is the actor's own. Ask "
                "another person, or set the project's policy verifier_is_producer=allow.",
            )

    def _check_evidence(self, append: Append, project: str, evidence: Sequence[str]) -> None:
        missing = [item for item in evidence if not append.of(EVIDENCE, self._keys.evidence(project, item)).version]
        if missing:
            refuse(
                "EVIDENCE_NOT_FOUND",
                f"{len(missing)} of the objects of evidence that are named are not kept in this project. Add them "
                "first (`corrigenda evidence add`).",
                hashes=missing,
            )
