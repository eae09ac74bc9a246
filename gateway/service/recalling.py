"""What a run is given of the past: corrections that are near, and the block that is made of them for its prompt."""

from collections.abc import Callable

import msgspec

from gateway.scope.visible import NOBODY
from gateway.searching.filtering import CorrectionQuestion
from gateway.searching.pace import Due
from gateway.searching.prompt import Learned, PastCorrection, estimated_tokens, render
from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.corrections import CorrectionSearch, Rendered
from gateway.shapes.replies.searches import Search
from gateway.writing.policies import CORRECTIONS_MIN_SCORE, CORRECTIONS_TOP_K
from ledger.clock import stamp
from ledger.errors import CorrigendaError, refuse
from projections.embedders import TokenCounter


class Recalling(UseCases):
    """Search and render corrections."""

    def search_corrections(
        self,
        query: str,
        *,
        k: int | None = None,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        entity_key: str | None = None,
        min_score: float | None = None,
        min_position: str | None = None,
    ) -> CorrectionSearch:
        """Return the k nearest corrections that the ledger confirms at this moment, best first.

        Unconfirmed ones are among them, and say so. `agent`, `user` and `session` are the reader's: without any, only
        what is visible to the whole tenant or project is found. `k` and `min_score` (0 to 1) are by default what the
        policy says: corrections.top_k and corrections.min_score. What was chosen and left out is recorded under the
        answer's `trace_id`.

        Errors: VALIDATION_FAILED; UNAVAILABLE if `min_position` is not reached within two seconds.
        """
        self._require("read")
        request = requests.parse(
            requests.SearchCorrectionsRequest, query=query, k=k, agent=agent, user=user, session=session,
            entity_key=entity_key, min_score=min_score,
        )  # fmt: skip
        self._need_project()
        owed = self._reach(min_position)
        found, warnings = self._checked(lambda due: self._near_corrections(request, due), owed)
        return msgspec.structs.replace(found, warnings=(*warnings, *found.warnings)) if warnings else found

    def render_corrections(
        self,
        query: str,
        *,
        agent: str,
        user: str | None = None,
        session: str | None = None,
        entity_key: str | None = None,
        k: int | None = None,
        min_score: float | None = None,
        budget: int | None = None,
        learnings: int = 0,
        min_position: str | None = None,
    ) -> Rendered:
        """Return the block of past corrections for an agent's prompt, and at most so many learnings after them.

        It takes at most `budget` tokens, counted by the embedder's tokenizer, or, where it has none, as one for each 3
        bytes. If it cannot be made, nothing is raised: the text is empty, `failed` has the code, and a run goes on.
        `trace_ids` name what was recorded of the search for corrections, and of that for learnings.

        Errors: VALIDATION_FAILED, FORBIDDEN_ACTOR, UNAVAILABLE (the gateway is closed).
        """
        self._require("read")
        request = requests.parse(
            requests.RenderRequest, query=query, k=k, agent=agent, user=user, session=session, entity_key=entity_key,
            min_score=min_score, budget=budget, learnings=learnings,
        )  # fmt: skip
        self._need_project()
        try:
            owed = self._reach(min_position)
            rendered, warnings = self._checked(lambda due: self._rendered(request, due), owed)
        except CorrigendaError as error:
            return failed(error)
        return msgspec.structs.replace(rendered, warnings=(*warnings, *rendered.warnings))

    def _near_corrections(self, request: requests.SearchCorrectionsRequest, due: Due) -> CorrectionSearch:
        project = self._references.project
        k = request.k or self._policies.now(CORRECTIONS_TOP_K, project)
        scope = self._reader.scope(project or NOBODY, request)
        question = CorrectionQuestion(
            request=request, scope=scope, k=k, min_score=self._floor(request), asked_at=stamp(self._clock())
        )
        return self._retrieval.search_corrections(question, due)

    def _near_learnings(self, request: requests.RenderRequest, due: Due) -> Search | None:
        if not request.learnings:
            return None
        asked = requests.SearchRequest(
            query=request.query, k=request.learnings, kinds=("learning",),
            agent=request.agent, user=request.user, session=request.session,
        )  # fmt: skip
        found = self._retrieval.search(self._question(asked), due)
        floor = self._floor(request)
        near = tuple(hit for hit in found.hits if floor is None or hit.score >= floor)
        return msgspec.structs.replace(found, hits=near)

    def _floor(self, request: requests.SearchCorrectionsRequest) -> float | None:
        if request.min_score is not None:
            return request.min_score
        return self._policies.now(CORRECTIONS_MIN_SCORE, self._references.project)

    def _rendered(self, request: requests.RenderRequest, due: Due) -> Rendered:
        found, learned = self._near_corrections(request, due), self._near_learnings(request, due)
        if found.empty_reason == "no_embedder":
            refuse(
                "EMBEDDER_UNAVAILABLE",
                "An embedder is needed to find corrections by meaning, and none is set. Unset CORRIGENDA_EMBEDDER to "
                "use the builtin one.",
                reason="none",
            )
        past = [
            PastCorrection(
                identifier=hit.correction_id,
                field=hit.field,
                original_value=hit.original_value or "",
                corrected_value=hit.corrected_value or "",
                entity_key=hit.entity_key,
                reason=hit.reason,
                confirmed=hit.state == "active",
            )
            for hit in found.hits
        ]
        known = [
            Learned(identifier=hit.revision_id, content=hit.content or "", verified=hit.trust == "verified")
            for hit in (learned.hits if learned else ())
        ]
        block = render(past, known, budget=request.budget, count=self._counter())
        warnings = (*found.warnings, *(learned.warnings if learned else ()))
        return Rendered(
            text=block.text,
            correction_ids=block.corrections,
            memory_ids=block.learnings,
            truncated=block.truncated,
            warnings=tuple(dict.fromkeys(warnings)),
            failed=None,
            trace_ids=tuple(one.trace_id for one in (found, learned) if one is not None and one.trace_id is not None),
        )

    def _counter(self) -> Callable[[str], int]:
        embedder = self._relay.embedder
        return embedder.count_tokens if isinstance(embedder, TokenCounter) else estimated_tokens


def failed(error: CorrigendaError) -> Rendered:
    """Return what is given in place of a block that could not be made."""
    warning = f"{error.code}: {error.message}"
    return Rendered(text="", correction_ids=(), memory_ids=(), truncated=False, warnings=(warning,), failed=error.code)
