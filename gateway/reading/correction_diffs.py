"""What happened to corrections between two positions: each one's acts, and how it stood before and after.

What a correction says never changes, so only its state does. Nothing here says which corrections these are.
"""

from collections.abc import Iterable, Mapping, Sequence

from gateway.scope.names import Names, References
from gateway.shapes.replies.past import CorrectionDiff, CorrectionThen
from gateway.views.revisions import correction_text_of
from gateway.views.viewing import Viewing
from ledger.corrections import CORRECTION, CorrectionState
from ledger.verified import Recorded, VerifiedLedger


class CorrectionDiffs:
    """Compares corrections of one ledger with themselves. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger, names: Names, references: References, viewing: Viewing) -> None:
        self._ledger = ledger
        self._names = names
        self._references = references
        self._viewing = viewing

    def diffs(self, corrections: Iterable[str], first: int, last: int) -> Mapping[str, CorrectionDiff]:
        """Return what happened, above one position up to another, to those corrections that the reader sees."""
        histories = {
            one: [item for item in recorded if item.entry.position <= last]
            for one, recorded in self._ledger.streams(corrections).items()
        }
        seen = {one: history for one, history in histories.items() if self._is_seen(_folded(history))}
        untold = self._viewing.untold_about(_about(history) for history in seen.values())
        return {
            one: self._diff(one, history, first, told=_about(history) not in untold) for one, history in seen.items()
        }

    def _is_seen(self, state: CorrectionState) -> bool:
        return state.recorded is not None and self._references.holds_correction(state.recorded)

    def _diff(self, correction: str, history: Sequence[Recorded], first: int, *, told: bool) -> CorrectionDiff:
        before = [item for item in history if item.entry.position <= first]
        return CorrectionDiff(
            correction_id=correction,
            acts=tuple(item.entry.envelope.type.split(".")[1] for item in history[len(before) :]),
            before=self._then(before, told=told) if before else None,
            after=self._then(history, told=told),
        )

    def _then(self, history: Sequence[Recorded], *, told: bool) -> CorrectionThen:
        state, text = _folded(history), correction_text_of(history[0])
        told = told and history[0].payload is not None
        agent = state.recorded.scope.agent if state.recorded else None
        return CorrectionThen(
            state=state.state or "",
            superseded_by=state.superseded_by,
            agent=self._names.show(agent) if agent else "",
            field=text.field,
            entity_key=text.entity_key,
            original_value=text.original_value if told else None,
            corrected_value=text.corrected_value if told else None,
            memory=state.recorded.revision if state.recorded else None,
        )


def _folded(history: Sequence[Recorded]) -> CorrectionState:
    return CORRECTION.fold(item.event for item in history)


def _about(history: Sequence[Recorded]) -> str | None:
    recorded = _folded(history).recorded
    return None if recorded is None else recorded.revision
