"""Pages of corrections: each as it stood when the first page was read, so that pages neither skip nor repeat.

It only says where a list goes on; what is in it, `corrections` confirms.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.reading.corrections import Corrections
from gateway.reading.reader import Reader
from gateway.scope.names import References, no_such_project
from gateway.shapes.cursors import Cursors, Place, Taken, take
from gateway.shapes.replies.corrections import Correction
from gateway.shapes.requests import CorrectionPageRequest
from ledger.verified import VerifiedLedger

CHUNK = 200


class CorrectionPages:
    """Pages through the corrections of one ledger as one project sees them. The caller has caught up."""

    def __init__(
        self, ledger: VerifiedLedger, references: References, reader: Reader, corrections: Corrections
    ) -> None:
        self._references = references
        self._reader = reader
        self._corrections = corrections
        self._cursors = Cursors(ledger.keys, reader.incarnation)

    def page(self, request: CorrectionPageRequest) -> tuple[Taken[Correction], Place, str | None]:
        """Return a page, the place that it was read from, and the cursor with which the list goes on.

        Errors: CORRECTION_NOT_FOUND (no such project), CURSOR_INVALID, CURSOR_FILTER_MISMATCH.
        """
        if request.cursor is None and self._references.project is None:
            raise no_such_project("CORRECTION_NOT_FOUND")
        place = self._cursors.begin(request.cursor, self._filter(request), head=self._reader.position)
        page = take(self._found(request, place), request.limit, _size)
        return page, place, self._cursors.onward(place, page.last, self._filter(request))

    def _found(self, request: CorrectionPageRequest, place: Place) -> Iterator[tuple[int, Correction]]:
        after, most = place.last, min(CHUNK, request.limit + 1)
        while True:
            items, further = self._corrections.stood(request, position=place.position, after=after, most=most)
            yield from items
            if further is None:
                return
            after, most = further, CHUNK

    def _filter(self, request: CorrectionPageRequest) -> Mapping[str, Any]:  # Any: JSON
        return {
            "list": "corrections",
            "whole": self._references.visible.whole,
            "project": self._references.project_name,
            "states": sorted(set(request.states)),
            "agent": request.agent,
            "entity_key": request.entity_key,
            "since": request.since,
            "user": request.user,
            "session": request.session,
        }


def _size(item: Correction) -> int:
    """Return how many characters a correction takes of a page."""
    return sum(
        len(text or "") for text in (item.original_value, item.corrected_value, item.original_input, item.reason)
    )
