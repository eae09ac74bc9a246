"""What a search found, and what it left out."""

from gateway.shapes.replies.base import Reply
from gateway.shapes.replies.memories import Revision


class Hit(Revision, frozen=True, kw_only=True):
    """A neighbour that the ledger confirmed. `score` is the cosine similarity, −1 to 1; in an answer with the warning
    `full_text` it says how well the words agree, 0 to 1.

    In an answer of the past everything is as it was said then, but `state`, `trust`, `stream_version` and by what and
    when it was superseded: those are the present's.
    """

    rank: int
    score: float
    why: str


class Excluded(Reply, frozen=True, kw_only=True):
    """Something near that was not served, and which rule left it out."""

    memory_id: str
    revision_id: str
    score: float
    reason: str


class Search(Reply, frozen=True, kw_only=True):
    """What a search found. `empty_reason` is None if there are hits.

    `at_position` is where the ledger was read as it stood, if that was asked for; `excluded` are at most a hundred near
    ones that were left out, if it was asked why. `trace_id` names what was recorded of it, None where nothing could be.
    """

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...]
    empty_reason: str | None
    trace_id: str | None
    position: int
    incarnation: int
    at_position: int | None = None
    excluded: tuple[Excluded, ...] | None = None
