"""The graph around a memory: long chains, links across lineages, and what is beside them."""

import json
import time
from collections.abc import Iterable, Iterator

import pytest

import corrigenda
from cli.views import graph
from gateway.service import Gateway
from ledger.store import Store
from tests.conftest import fresh_database
from tests.house import tamper
from tests.integration.conftest import Here, opened
from tests.pep_histories import packed
from tests.roles import as_writer

LONG = 1_000
CPU_S_MAX = 1.0  # what an answer about a thousand revisions may take of a processor


def row(pep: int, at: int, *, replaces: int | None) -> bytes:
    """Return a line of a PEP history."""
    claim = {
        "at": at, "pep": pep, "title": f"Title {at}", "status": "Draft", "type": "Process",
        "replaces": [replaces] if replaces else [], "superseded_by": [], "abstract": "", "changed": [],
    }  # fmt: skip
    return json.dumps(claim).encode() + b"\n"


@pytest.fixture(scope="module")
def long_one(server_url: str, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on a memory of a thousand revisions, and a thousand memories each superseding the last."""
    home = tmp_path_factory.mktemp("long")
    lines = [row(1, at, replaces=None) for at in range(LONG)]
    lines += [row(pep, pep, replaces=pep - 1 if pep > 2 else None) for pep in range(2, LONG + 2)]
    with fresh_database(server_url, template=migrated_template) as url:
        where = {"database_url": as_writer(url), "home": str(home)}
        with opened(where) as gateway:
            assert gateway.import_peps(packed(home / "long.jsonl.gz", lines)).rejected == 0
            yield gateway


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what grows by a name for each time that streams are read."""
    counted: list[str] = []
    one, many = Store.stream, Store.streams

    def stream(self: Store, stream: str) -> object:
        counted.append("stream")
        return one(self, stream)

    def streams(self: Store, streams: Iterable[str]) -> object:
        counted.append("streams")
        return many(self, streams)

    monkeypatch.setattr(Store, "stream", stream)
    monkeypatch.setattr(Store, "streams", streams)
    return counted


class TestLong:
    """A thousand of a thing."""

    @pytest.mark.parametrize("ask", ["show", "explain", "history", "lineage"])
    def test_a_thousand_revisions_are_read_once(self, long_one: Gateway, reads: list[str], ask: str) -> None:
        """Given 1,000 revisions of one memory, when it is asked about, then its stream is read once, and quickly."""
        began = time.process_time()
        found = getattr(long_one, ask)("pep-1")
        assert time.process_time() - began < CPU_S_MAX
        assert reads == ["stream"]
        if isinstance(found, corrigenda.Lineage):
            assert len(found.nodes) == LONG + 1 and len(found.edges) == LONG - 1
            assert graph.tree(found).count("●") == graph.lanes(found).count("●") == LONG + 1

    def test_a_thousand_memories_are_followed(self, long_one: Gateway, reads: list[str]) -> None:
        """Given 1,000 memories in a row, when the graph of the middle is asked for, all are in it, after few reads."""
        began = time.process_time()
        found = long_one.lineage("pep-500")
        assert time.process_time() - began < CPU_S_MAX
        assert {node.id for node in found.nodes if node.type == "memory"} == {f"pep-{n}" for n in range(2, LONG + 2)}
        assert len(reads) <= 4

    @pytest.mark.parametrize(("up", "down", "peps"), [(True, None, "500 501 502"), (None, True, "500 499 498")])
    def test_depth_and_direction(self, long_one: Gateway, up: bool | None, down: bool | None, peps: str) -> None:
        """Given a long row, when two steps one way are asked for, then those are in the graph, nearest first."""
        found = long_one.lineage("pep-500", up=up, down=down, depth=2)
        memories = [node.id for node in found.nodes if node.type == "memory"]
        assert memories == [f"pep-{number}" for number in peps.split()]
        assert len([edge for edge in found.edges if edge.source.startswith("pep-")]) == 2

    def test_no_steps_are_the_memory_alone(self, long_one: Gateway) -> None:
        """Given a depth of 0, when the graph is asked for, then it is the memory and its own revisions."""
        found = long_one.lineage("pep-500", depth=0)
        assert [(node.type, node.memory_id) for node in found.nodes] == [("memory", None), ("revision", "pep-500")]


class TestReadModel:
    """The read model of edges only says where to look."""

    @pytest.mark.parametrize(
        "edit",
        ["DELETE FROM corrigenda.edge", "UPDATE corrigenda.edge SET newer = older, older = newer",
         "UPDATE corrigenda.edge SET older = 'mem_01JZ8Q0000000000000000000B'"],
    )  # fmt: skip
    def test_edges_that_were_edited_change_no_graph(self, open_here: Here, gateway: Gateway, edit: str) -> None:
        """Given edited edges, when a graph is asked for, then it is the one that the memories' own events make."""
        for name in "abcd":
            gateway.remember(name, memory_id=name)
        for pair in ("ba", "cb", "dc"):
            gateway.link(*pair)
        before = gateway.lineage("b")
        tamper(open_here.ledger_url, (edit, ()))
        open_here.broken = True
        assert gateway.lineage("b") == before
        assert [node.id for node in before.nodes if node.type == "memory"] == ["b", "c", "d", "a"]


class TestCorrections:
    """Corrections that are about a revision stand beside it."""

    def test_a_correction_that_names_a_memory(self, gateway: Gateway) -> None:
        """Given a correction of a memory, when its graph is asked for, an edge leads to its revision."""
        first = gateway.remember("charge code THC", memory_id="code")
        recorded = gateway.record_correction(
            agent="ap", field="code", original_value="THC", corrected_value="DTHC", memory="code"
        )
        found = gateway.lineage("code")
        (node,) = (node for node in found.nodes if node.type == "correction")
        assert (node.id, node.state, node.label) == (recorded.correction_id, "active", "code: THC → DTHC")
        edges = [(edge.source, edge.target) for edge in found.edges if edge.kind == "corrects"]
        assert edges == [(node.id, first.revision_id)]
        assert f"corrected by {node.id}  active  code: THC → DTHC" in graph.tree(found)
