"""The graph around a memory or a correction."""

import msgspec

from gateway.shapes.replies.base import Reply


class LineageNode(Reply, frozen=True, kw_only=True):
    """A memory, a revision (of the memory `memory_id`) or a correction in a lineage graph."""

    id: str
    type: str
    state: str
    label: str
    version: int | None = None
    memory_id: str | None = None


class LineageEdge(Reply, frozen=True, kw_only=True):
    """`source` (`from` in JSON) supersedes, proposes to supersede, conflicts with or corrects `target` (`to`)."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    kind: str


class Lineage(Reply, frozen=True, kw_only=True):
    """The graph around one memory: links between memories, its revisions, and where merges and splits lead."""

    root: str
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    position: int
    incarnation: int
