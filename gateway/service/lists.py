"""Lists of memories: a page at a time, or all of them one after the other."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from gateway.reading.lists import CHUNK, Chunk, Lister, Wanted
from gateway.service.base import UseCases, listed
from gateway.shapes import requests
from gateway.shapes.cursors import Place, take
from gateway.shapes.replies.memories import MemoryList, Revision
from ledger.limits import LIST_LIMIT_DEFAULT


class Lists(UseCases):
    """List memories."""

    def list_memories(
        self,
        *,
        states: Sequence[str] | None = None,
        memory: str | None = None,
        kind: str | None = None,
        tags: Sequence[str] = (),
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        limit: int = LIST_LIMIT_DEFAULT,
        cursor: str | None = None,
        min_position: str | None = None,
    ) -> MemoryList:
        """Return a page of the project's memories, oldest first: those that are active or held unless `states` says.

        Active revisions that were revoked are listed only under `revoked`. Whoever has the permission `admin` sees all
        of them; with `agent`, `user` or `session` those that such a reader may see; everybody else, without any of
        these, those that its actor may see. `memory` lists one memory's revisions, with what happened to each. `cursor`
        is a page's `next_cursor`: it goes on as of that page's position. Errors: VALIDATION_FAILED, MEMORY_NOT_FOUND
        (an unknown project too), CURSOR_INVALID, CURSOR_FILTER_MISMATCH.
        """
        request = _request(
            states, memory=memory, kind=kind, tags=listed(tags), agent=agent, user=user, session=session, limit=limit,
            cursor=cursor,
        )  # fmt: skip
        wanted, place = self._begin(request, min_position)
        found = self._listed(wanted, place, min(CHUNK, limit + 1))
        page = take(found, limit, lambda item: len(item.content or ""))
        return MemoryList(
            items=tuple(page.items),
            next_cursor=self._lister.cursor(wanted, place, page.last),
            truncated=page.cut,
            position=place.position,
            incarnation=self._reader.incarnation,
        )

    def iterate_memories(
        self,
        *,
        states: Sequence[str] | None = None,
        memory: str | None = None,
        kind: str | None = None,
        tags: Sequence[str] = (),
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        cursor: str | None = None,
        min_position: str | None = None,
    ) -> Iterator[Revision]:
        """Yield all that `list_memories` pages through, as of one position, however many there are."""
        request = _request(
            states, memory=memory, kind=kind, tags=listed(tags), agent=agent, user=user, session=session, cursor=cursor
        )
        wanted, place = self._begin(request, min_position)
        return (item for _, item in self._listed(wanted, place, CHUNK))

    def _begin(self, request: requests.ListRequest, min_position: str | None) -> tuple[Wanted, Place]:
        self._require("read")
        self._need_project()
        return self._read(min_position, lambda: self._lister.begin(request))

    def _listed(self, wanted: Wanted, place: Place, most: int) -> Iterator[tuple[int, Revision]]:
        """Yield items with their keys; between two chunks others may write."""
        while True:
            chunk: Chunk = self._read(None, partial(self._lister.chunk, wanted, place, most))
            yield from chunk.items
            if chunk.next is None:
                return
            place, most = Place(place.position, chunk.next), CHUNK

    @property
    def _lister(self) -> Lister:
        return Lister(self._ledger, self._references, self._reader)


def _request(states: Sequence[str] | None, **fields: Any) -> requests.ListRequest:  # Any: unchecked input
    chosen = {} if states is None else {"states": listed(states)}
    return requests.parse(requests.ListRequest, **chosen, **fields)
