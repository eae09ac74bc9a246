"""What is recorded as a correction, and what becomes of it. One that names a memory corrects it in the same append."""

from typing import NamedTuple

import msgspec

from gateway.deciding.base import name_scope
from gateway.deciding.beginning import Beginning
from gateway.deciding.contradiction import OFF, Finding
from gateway.scope.names import no_project
from gateway.shapes.requests import CorrectRequest, RecordCorrectionRequest, SupersedeCorrectionRequest
from gateway.writing.page import Append
from gateway.writing.policies import CORRECTIONS_AGENTS
from ledger.corrections import (
    CORRECTION,
    Confirm,
    CorrectionText,
    Record,
    Replace,
    Withdraw,
    indexed_text,
)
from ledger.errors import refuse
from ledger.message import ScopeIds


class Correcting(Beginning):
    """Decides corrections as records."""

    def record_correction(self, append: Append, request: RecordCorrectionRequest) -> None:
        """Decide a record, and with a memory the correction of that memory too."""
        if self._project is None:
            raise no_project()
        if request.memory is not None:
            self._actor.require("correct")
        project = append.name("project", self._names.root, self._project)
        scope = name_scope(append, project, request.scope)
        self._check_configured(append, project, request.agent)
        corrected = None
        if request.memory is not None:
            lineage, corrected = self._references.revision(request.memory)
            append.subjects = append.state(lineage).revisions[corrected].subjects
        recorded = self._record(append, _text(request), scope=scope, visibility=request.visibility, revision=corrected)
        if corrected is not None:
            right = CorrectRequest(content=request.corrected_value, reason=request.reason)
            self.correct(append, corrected, right, request.if_revision)
        self._contradictions.take(append, recorded.correction, recorded.text, recorded.finding.near)

    def confirm_correction(self, append: Append, reference: str, reason: str | None, if_revision: int | None) -> None:
        """Decide that a person vouches for what an agent reported."""
        correction = self._correction(append, reference, if_revision)
        facts, text = self._reader.correction(append, correction)
        finding = self._look(append, facts.scope, text)
        append.decide_on(CORRECTION, correction, Confirm(contradiction=finding.outcome, reason=reason))
        self._contradictions.take(append, correction, text, finding.near)

    def supersede_correction(
        self, append: Append, reference: str, request: SupersedeCorrectionRequest, if_revision: int | None
    ) -> None:
        """Decide that another correction, alike but for its value, takes the place of one."""
        old = self._correction(append, reference, if_revision)
        facts, said = self._reader.correction(append, old)
        text = msgspec.structs.replace(said, corrected_value=request.corrected_value, recorded_at=None)
        append.subjects = append.of(CORRECTION, old).subjects
        new = self._record(append, text, scope=facts.scope, visibility=facts.visibility, revision=facts.revision)
        replace = Replace(content=new.content, successor=new.correction, reason=request.reason)
        append.decide_on(CORRECTION, old, replace)
        self._contradictions.take(append, new.correction, text, new.finding.near)

    def revoke_correction(self, append: Append, reference: str, reason: str, if_revision: int | None) -> None:
        """Decide the withdrawal of a correction."""
        correction = self._correction(append, reference, if_revision)
        append.decide_on(CORRECTION, correction, Withdraw(reason=reason))

    def _record(
        self, append: Append, text: CorrectionText, *, scope: ScopeIds, visibility: str, revision: str | None
    ) -> "_Recorded":
        """Decide a record, and find what it contradicts."""
        if text.corrected_value == text.original_value:
            refuse("NO_CHANGE", "The corrected value is the original one, so nothing is corrected; nothing was stored.")
        correction, content = f"cor_{self._mint()}", self._keys.content(scope.project, indexed_text(text))
        finding = self._look(append, scope, text)
        record = Record(
            content=content,
            contradiction=finding.outcome,
            origin=self._origin(None),
            revision=revision,
            scope=scope,
            text=text,
            visibility=visibility,
            state="active" if self._actor.kind == "human" else "unconfirmed",
        )
        append.decide_on(CORRECTION, correction, record)
        return _Recorded(correction, content, text, finding)

    def _look(self, append: Append, scope: ScopeIds, text: CorrectionText) -> Finding:
        """Return what a person's correction contradicts; what an agent reports contradicts nothing as yet."""
        return self._contradictions.look(append, scope, text) if self._actor.kind == "human" else Finding(outcome=OFF)

    def _check_configured(self, append: Append, project: str, agent: str) -> None:
        agents = self._policies.within(append, CORRECTIONS_AGENTS, project)
        if agents is not None and agent not in agents:
            refuse(
                "NOT_CONFIGURED",
                "Corrections are recorded of the agents that the policy names (corrections.agents), and this one is "
                "none of them. Nothing was stored.",
                setting="corrections.agents",
            )

    def _correction(self, append: Append, reference: str, if_revision: int | None) -> str:
        correction = self._references.correction(reference)
        version = append.of(CORRECTION, correction).version
        if if_revision not in (None, version):
            refuse(
                "STALE_REVISION",
                f"The correction was expected at version {if_revision} of its stream, and it is at {version}. Read it "
                "again.",
                expected=if_revision,
                found=version,
            )
        return correction


class _Recorded(NamedTuple):
    """A record that was decided: its id, the digest and the text of it, and what it contradicts."""

    correction: str
    content: str
    text: CorrectionText
    finding: Finding


def _text(request: RecordCorrectionRequest) -> CorrectionText:
    return CorrectionText(
        corrected_value=request.corrected_value,
        entity_key=request.entity_key,
        field=request.field,
        original_input=request.original_input,
        original_value=request.original_value,
        reason=request.reason,
        recorded_at=None,
        run=request.run,
        tags=request.tags,
    )
