"""The drawings of a lineage: merges, splits, chains and hostile labels."""

import itertools
from collections.abc import Callable

import pytest
from cli_hands import corrigenda, install, lineage

from cli.views import graph
from gateway.shapes.replies.lineages import Lineage, LineageEdge, LineageNode

Draw = Callable[[Lineage], str]
MERGE = lineage(("pep-600", "pep-513"), ("pep-600", "pep-571"), ("pep-600", "pep-599"), root="pep-571")
SPLIT = lineage(("a", "old"), ("b", "old"), root="old")
DIAMOND = lineage(("d", "b"), ("d", "c"), ("b", "a"), ("c", "a"), root="a")


def drawn(text: str) -> str:
    """A drawing without its captions' states, as it is written in the tests."""
    return text.replace("  active", "").strip("\n")


def test_a_chain_goes_straight_down() -> None:
    """One after another hangs from a line, however long the chain: no indentation grows."""
    chain = lineage(("c", "b"), ("b", "a"), root="a")
    assert drawn(graph.tree(chain)) == "● c\n│\n● b\n│\n● a"


def test_a_merge_is_a_fork_of_the_tree() -> None:
    """What one memory superseded hangs below it, each on a branch of its own."""
    assert drawn(graph.tree(MERGE)) == "● pep-600\n├─● pep-513\n├─● pep-571\n└─● pep-599"


def test_a_split_draws_the_common_ancestor_once() -> None:
    """Two that superseded the same one are two trees; the second only names what was drawn."""
    assert drawn(graph.tree(SPLIT)) == "● a\n│\n● old\n\n● b\n│\n○ old  (drawn above)"


def test_a_branch_keeps_its_line() -> None:
    """Below a branch the trunk's line goes on until the last branch."""
    tree = lineage(("m", "a2"), ("m", "b"), ("a2", "a1"), root="m")
    assert drawn(graph.tree(tree)) == "● m\n├─● a2\n│ │\n│ ● a1\n└─● b"


def test_a_lone_memory() -> None:
    """A memory that nothing is linked to is a tree of one node, and so are lanes and DOT."""
    alone = lineage(root="pep-8")
    assert drawn(graph.tree(alone)) == "● pep-8"
    assert drawn(graph.lanes(alone)) == "●  pep-8"


def test_lanes_of_a_merge() -> None:
    """A lane begins for each further memory that one superseded."""
    assert drawn(graph.lanes(MERGE)) == "●  pep-600\n├─┬─╮\n● │ │  pep-513\n  ● │  pep-571\n    ●  pep-599"


def test_lanes_of_a_split() -> None:
    """Lanes that wait for the same memory end in it."""
    assert drawn(graph.lanes(SPLIT)) == "●  a\n│ ●  b\n├─╯\n●  old"


def test_lanes_of_a_diamond() -> None:
    """Lanes part and meet again, and every node is drawn once."""
    assert drawn(graph.lanes(DIAMOND)) == "●  d\n├─╮\n● │  b\n│ ●  c\n├─╯\n●  a"


@pytest.mark.parametrize(
    ("draw", "mark"), [(graph.tree, "● {}  active"), (graph.lanes, "  {}  active"), (graph.dot, '  "{}" [')]
)
def test_every_node_of_every_small_graph_is_drawn_once(draw: Draw, mark: str) -> None:
    """All graphs of four nodes, cycles too: nothing is left out and no drawing runs forever."""
    pairs = [(a, b) for a in "wxyz" for b in "wxyz" if a != b]
    for edges in itertools.combinations(pairs, 3):
        text = draw(lineage(*edges, root=edges[0][0]))
        names = {end for edge in edges for end in edge}
        assert all(text.count(mark.format(name)) == 1 for name in names), (edges, text)


def test_lanes_are_newest_first() -> None:
    """No memory is drawn above one that superseded it."""
    rows = graph.lanes(DIAMOND)
    assert all(rows.index(f"  {edge.source}  ") < rows.index(f"  {edge.target}  ") for edge in DIAMOND.edges)


def test_a_very_long_chain() -> None:
    """Ten thousand revisions are drawn without recursion."""
    chain = lineage(*((str(n + 1), str(n)) for n in range(10_000)), root="0")
    assert graph.tree(chain).count("●") == graph.lanes(chain).count("●") == 10_001


HOSTILE = lineage(("b", "a"), root="a", labels={"a": 'x"]; evil [label="\n\x1b[2J\u202e', "b": "b"})


@pytest.mark.parametrize("draw", [graph.tree, graph.lanes, graph.dot])
def test_hostile_labels_are_inert(draw: Draw) -> None:
    """A label cannot break its line, leave its quotes or move the cursor."""
    text = draw(HOSTILE)
    assert not {"\x1b", "\u202e"} & set(text)
    assert not any(line.startswith("\\x1b") for line in text.splitlines())


def test_dot_quotes_its_strings() -> None:
    """Quotes and backslashes in a label are escaped, so that it stays one string."""
    line = next(line for line in graph.dot(HOSTILE).splitlines() if line.startswith('  "a" ['))
    assert line.count('"') - line.count('\\"') == 4


BESIDE = Lineage(
    root="m",
    nodes=(
        LineageNode(id="m", type="memory", state="conflicted", label="m", version=2),
        LineageNode(id="a", type="revision", state="conflicted", label="one", version=1, memory_id="m"),
        LineageNode(id="b", type="revision", state="conflicted", label="two", version=2, memory_id="m"),
        LineageNode(id="c", type="revision", state="active", label="three", version=5, memory_id="pep-8"),
        LineageNode(id="cor", type="correction", state="active", label="x → y"),
    ),
    edges=(
        LineageEdge(source="c", target="b", kind="supersedes"),
        LineageEdge(source="b", target="a", kind="conflicts"),
        LineageEdge(source="cor", target="a", kind="corrects"),
    ),
    position=9,
    incarnation=1,
)


@pytest.mark.parametrize("draw", [graph.tree, graph.lanes])
def test_what_is_beside_is_said_beside(draw: Draw) -> None:
    """A contradiction and a correction are notes of the revisions; another memory's revision names its memory."""
    lines = [line.lstrip("● │") for line in draw(BESIDE).splitlines() if "●" in line]
    assert lines == [
        "m  v2  conflicted",
        "a  v1  conflicted  one  (conflicts with b; corrected by cor  active  x → y)",
        "c  v5  active  three  of pep-8",
        "b  v2  conflicted  two  (conflicts with a)",
    ]


def test_dot_draws_every_edge() -> None:
    """In DOT contradictions and corrections are edges of their own kind, and a correction is a node."""
    text = graph.dot(BESIDE)
    assert '"b" -> "a" [label="conflicts", style=dotted, dir=none, constraint=false];' in text
    assert '"cor" -> "a" [label="corrects", style=dotted];' in text
    assert '"cor" [label="cor  active  x → y", shape=note];' in text


class TestFormats:
    """`--format` and `-o json`."""

    def lineage(self, monkeypatch: pytest.MonkeyPatch, *words: str, reply: Lineage = MERGE):
        gateway = install(monkeypatch, lineage=reply)
        return corrigenda("lineage", "pep-571", *words), gateway

    def test_json_is_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`--format json` and `-o json` are the same document."""
        first, _ = self.lineage(monkeypatch, "--format", "json")
        second, _ = self.lineage(monkeypatch, "-o", "json")
        assert first.out == second.out != ""
        assert '"from": "pep-600"' in first.out

    def test_two_formats_contradict(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A drawing and a document at once is exit 2."""
        answer, gateway = self.lineage(monkeypatch, "--format", "dot", "-o", "json")
        assert answer.code == 2 and gateway.opened == []

    @pytest.mark.parametrize(
        ("words", "up", "down", "depth"),
        [([], None, None, None), (["--up"], True, None, None), (["--down", "--depth", "2"], None, True, 2)],
    )
    def test_directions(
        self, monkeypatch: pytest.MonkeyPatch, words: list[str], up: bool | None, down: bool | None, depth: int | None
    ) -> None:
        """--up, --down and --depth reach the gateway; what was not said is None."""
        _, gateway = self.lineage(monkeypatch, *words)
        assert gateway.asked("lineage") == (("pep-571",), {"up": up, "down": down, "depth": depth})
