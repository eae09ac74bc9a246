"""Three drawings of a lineage: a tree, lanes as version control draws them, and DOT. Pure: a reply in, text out.

Newest first; an edge leads from what supersedes to what is superseded. A lineage has no cycles; a reply that has
some is still drawn, each node once. What else is between two nodes, a contradiction or a correction, is said beside
them in a drawing of characters, and is an edge of its own in DOT.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli.text import clip, inert

if TYPE_CHECKING:
    from gateway.shapes.replies.lineages import Lineage, LineageEdge, LineageNode

_LABEL_COLUMNS = 60
_DASH, _BAR, _DOT, _AGAIN = "─", "│", "●", "○"
# What stands in a cell of a connecting line, by the directions that it joins: up, down, left, right.
_CORNERS = {"": " ", "ud": _BAR, "lr": _DASH, "dl": "╮", "dr": "╭", "ul": "╯", "ur": "╰"} | {
    "udr": "├",
    "udl": "┤",
    "dlr": "┬",
    "ulr": "┴",
    "udlr": "┼",
}


_DRAWN = ("supersedes", "proposes")  # the kinds of edges that lead from newer to older
_DRAWN_IN_CHAINS = (*_DRAWN, "corrects")
_LINES = {"proposes": "dashed", "conflicts": "dotted", "corrects": "dotted"}
_BOXES = {"memory": "box", "revision": "oval", "correction": "note"}


@dataclass(frozen=True, slots=True)
class _Shape:
    """A lineage made ready for drawing: nodes in a fair order, each one's older and newer neighbours, and its notes."""

    nodes: Mapping[str, "LineageNode"]
    older: Mapping[str, tuple[str, ...]]
    newer: Mapping[str, tuple[str, ...]]
    notes: Mapping[str, str]

    def heads(self) -> list[str]:
        return [node for node in self.nodes if not self.newer[node]]


def _shape(lineage: "Lineage") -> _Shape:
    chain = _is_chain(lineage)
    drawn = _DRAWN_IN_CHAINS if chain else _DRAWN
    beside = [node for node in lineage.nodes if chain or node.type != "correction"]
    nodes = {node.id: node for node in sorted(beside, key=lambda node: node.id != lineage.root)}
    older: dict[str, list[str]] = {node: [] for node in nodes}
    newer: dict[str, list[str]] = {node: [] for node in nodes}
    known = {node: set[str]() for node in nodes}
    for edge in lineage.edges:
        if edge.kind not in drawn or edge.source not in nodes or edge.target not in nodes:
            continue
        if edge.target not in known[edge.source]:
            known[edge.source].add(edge.target)
            older[edge.source].append(edge.target)
            newer[edge.target].append(edge.source)
    return _Shape(
        nodes, {n: tuple(o) for n, o in older.items()}, {n: tuple(o) for n, o in newer.items()}, _notes(lineage)
    )


def _is_chain(lineage: "Lineage") -> bool:
    """Report whether the lineage is that of a correction, in which corrections are drawn among the rest."""
    return any(node.id == lineage.root and node.type == "correction" for node in lineage.nodes)


def _notes(lineage: "Lineage") -> dict[str, str]:
    """Return what is said beside a node: what contradicts it, what it proposes to replace, what corrects it."""
    nodes = {node.id: node for node in lineage.nodes}
    said: dict[str, list[str]] = {}
    chain = _is_chain(lineage)
    for edge in lineage.edges:
        if edge.kind == "conflicts":
            said.setdefault(edge.source, []).append(f"conflicts with {inert(edge.target)}")
            said.setdefault(edge.target, []).append(f"conflicts with {inert(edge.source)}")
        elif edge.kind == "proposes":
            said.setdefault(edge.source, []).append("held to replace what is below it")
        elif edge.kind == "corrects" and edge.source in nodes and not chain:
            said.setdefault(edge.target, []).append(f"corrected by {caption(nodes[edge.source])}")
    return {node: f"  ({'; '.join(parts)})" for node, parts in said.items()}


def caption(node: "LineageNode") -> str:
    """Return what is said of a node: id, version, state and label, the label inert and cut."""
    version = "" if node.version is None else f"v{node.version}"
    label = "" if node.label == node.id else clip(inert(node.label), _LABEL_COLUMNS)
    return "  ".join(part for part in (inert(node.id), version, inert(node.state), label) if part)


def _said(shape: _Shape, node: str, home: str) -> str:
    """Return a node's caption, the memory that a revision is of where it is not that of the drawing, and its notes."""
    memory = shape.nodes[node].memory_id
    where = f"  of {inert(memory)}" if memory is not None and memory != home else ""
    return f"{caption(shape.nodes[node])}{where}{shape.notes.get(node, '')}"


def tree(lineage: "Lineage") -> str:
    """Return a tree: below a node hangs what it superseded; a node that was drawn already is only named again."""
    shape, drawn = _shape(lineage), set[str]()
    trees = [_branch(shape, head, drawn, lineage.root) for head in shape.heads()]
    trees += [_branch(shape, node, drawn, lineage.root) for node in shape.nodes if node not in drawn]
    return "\n\n".join("\n".join(lines) for lines in trees if lines)


def _branch(shape: _Shape, top: str, drawn: set[str], home: str) -> list[str]:
    if top in drawn:
        return []
    lines: list[str] = []
    waiting = [(top, "", "")]  # node, what stands before it, what stands before the lines under it
    while waiting:
        node, lead, hang = waiting.pop()
        if node in drawn:
            lines.append(f"{lead}{_AGAIN} {inert(node)}  (drawn above)")
            continue
        drawn.add(node)
        lines.append(f"{lead}{_DOT} {_said(shape, node, home)}")
        older = shape.older[node]
        if len(older) == 1:
            lines.append(f"{hang}{_BAR}")
            waiting.append((older[0], hang, hang))
        else:
            waiting += reversed([_fork(child, hang, last=child == older[-1]) for child in older])
    return lines


def _fork(child: str, hang: str, *, last: bool) -> tuple[str, str, str]:
    return (child, f"{hang}└─", f"{hang}  ") if last else (child, f"{hang}├─", f"{hang}{_BAR} ")


def _newest_first(shape: _Shape) -> Iterator[str]:
    missing = {node: len(newer) for node, newer in shape.newer.items()}
    ready, given = list(reversed(shape.heads())), set[str]()
    while len(given) < len(shape.nodes):
        node = ready.pop() if ready else next(n for n in shape.nodes if n not in given)  # only a cycle lacks heads
        if node in given:
            continue
        given.add(node)
        yield node
        for child in reversed(shape.older[node]):
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)


@dataclass(slots=True)
class _Lanes:
    """The columns of a lane drawing: each waits for one node, or is free (None) and may be used again."""

    waits: list[str | None] = field(default_factory=list[str | None])

    def column_of(self, node: str) -> int:
        """Return the leftmost column that waits for `node`, making one if none does."""
        return self.waits.index(node) if node in self.waits else self.take(node)

    def take(self, node: str) -> int:
        at = self.waits.index(None) if None in self.waits else len(self.waits)
        self.waits[at : at + 1] = [node]
        return at

    def gap(self) -> str:
        return " ".join(" " if waits is None else _BAR for waits in self.waits).rstrip()

    def row(self, at: int, text: str) -> str:
        cells = [_DOT if n == at else " " if waits is None else _BAR for n, waits in enumerate(self.waits)]
        return " ".join(cells).rstrip() + f"  {text}"


def lanes(lineage: "Lineage") -> str:
    """Return lanes: one line per node, newest first, with forks and joins drawn between the lines."""
    shape, board, lines = _shape(lineage), _Lanes(), list[str]()
    for node in _newest_first(shape):
        if lines and not shape.newer[node] and None in board.waits:
            lines.append(board.gap())  # or the head would look like the older one of what stood in its column
        at = board.column_of(node)
        lines += _join(board, node, at)
        lines.append(board.row(at, _said(shape, node, lineage.root)))
        lines += _split(board, at, shape.older[node])
    return "\n".join(lines)


def _join(board: _Lanes, node: str, at: int) -> list[str]:
    """End the other columns that wait for `node` in the leftmost one."""
    others = [n for n, waits in enumerate(board.waits) if waits == node and n != at]
    if not others:
        return []
    line = _connect(board.waits, at, ends=others, begins=())
    for other in others:
        board.waits[other] = None
    return [line]


def _split(board: _Lanes, at: int, children: Sequence[str]) -> list[str]:
    """Let the column go on with the first child, and lead columns to the others."""
    before = list(board.waits)
    before[at] = board.waits[at] = children[0] if children else None
    reached = [board.column_of(child) for child in children[1:]]
    if not reached:
        return []
    before += [None] * (len(board.waits) - len(before))
    begins = [column for column in reached if before[column] is None]
    joined = [column for column in reached if before[column] is not None and column != at]
    return [_connect(before, at, ends=(), begins=begins, joined=joined)]


def _connect(
    waits: Sequence[str | None],
    at: int,
    *,
    ends: Sequence[int],
    begins: Sequence[int],
    joined: Sequence[int] = (),
) -> str:
    """Draw the line that joins column `at` with others: some end in it, some begin, some only touch it."""
    touched = [at, *ends, *begins, *joined]
    low, high = min(touched), max(touched)
    cells: list[str] = []
    for column, waiting in enumerate(waits):
        up = waiting is not None and column not in begins
        down = (waiting is not None and column not in ends) or column in begins
        joins = "".join(("u" * up, "d" * down, "l" * (low < column <= high), "r" * (low <= column < high)))
        cells.append(_CORNERS[joins] + (_DASH if low <= column < high else " "))
    return "".join(cells).rstrip()


def dot(lineage: "Lineage") -> str:
    """Return the graph in Graphviz's language, newest at the top."""
    names = {node.id for node in lineage.nodes}
    lines = [_dot_node(node, lineage.root) for node in lineage.nodes]
    lines += [_dot_edge(edge) for edge in lineage.edges if edge.source in names and edge.target in names]
    return "\n".join(["digraph lineage {", "  node [shape=box];", *lines, "}"])


def _dot_node(node: "LineageNode", root: str) -> str:
    asked = ", penwidth=2" if node.id == root else ""
    box = _BOXES.get(node.type, "box")
    return f"  {_quoted(node.id)} [label={_quoted(caption(node))}, shape={box}{asked}];"


def _dot_edge(edge: "LineageEdge") -> str:
    """Return an edge; two that contradict each other stand side by side, and a correction beside what it corrects."""
    style = f", style={_LINES[edge.kind]}" if edge.kind in _LINES else ""
    side = ", dir=none, constraint=false" if edge.kind == "conflicts" else ""
    return f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [label={_quoted(edge.kind)}{style}{side}];"


def _quoted(text: str) -> str:
    return '"' + inert(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
