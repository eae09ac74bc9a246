"""What a caller calls a memory, and whose memory that is: exact, by project, and never assigned by a question."""

from collections.abc import Callable, Sequence

import pytest

from gateway.service import Gateway
from tests.house import last_position, refused, rows, types, written
from tests.integration.conftest import Here

ULID = "01J9ZKAAAAAAAAAAAAAAAAAAAA"
READS: dict[str, Callable[[Gateway, str], object]] = {
    "show": lambda gateway, name: gateway.show(name),
    "explain": lambda gateway, name: gateway.explain(name),
    "history": lambda gateway, name: gateway.history(name),
    "lineage": lambda gateway, name: gateway.lineage(name),
}
ACTS: dict[str, Callable[[Gateway, str], object]] = {
    "correct": lambda gateway, name: gateway.correct(name, "other"),
    "retire": lambda gateway, name: gateway.retire(name),
    "revoke": lambda gateway, name: gateway.revoke(name, reason="r"),
    "restore": lambda gateway, name: gateway.restore(name),
    "link": lambda gateway, name: gateway.link(name, "known"),
    "unlink": lambda gateway, name: gateway.unlink("known", name, reason="r"),
}
EVERY = READS | ACTS


def test_a_name_of_the_callers_own_is_shown_and_accepted(gateway: Gateway) -> None:
    """Given a memory with a caller's id, when it is read by name or by ours, then both answer with the name."""
    receipt = gateway.remember("a", memory_id="pep-57")

    assert receipt.memory_id == "pep-57"
    assert gateway.show("pep-57").memory_id == "pep-57"
    assert gateway.show(receipt.revision_id or "") == gateway.show("pep-57")
    assert gateway.search("a").hits[0].memory_id == "pep-57"


def test_one_name_in_two_projects_is_two_memories(open_here: Here, ledger_url: str) -> None:
    """LM-46, RC-35: given one name in two projects, when it is read in each, then each sees its own."""
    one, other = open_here(project="atlas"), open_here(project="borea")
    one.remember("of atlas", memory_id="m")
    other.remember("of borea", memory_id="m")

    assert (one.show("m").content, other.show("m").content) == ("of atlas", "of borea")
    lineages = rows(ledger_url, "SELECT DISTINCT lineage FROM corrigenda.revision")
    assert len(lineages) == 2


@pytest.mark.parametrize("name", ["Pump", " pump", "pump ", "pum", "pumps", "рump", "pump\u200b", "rev_pump"])
def test_what_only_looks_like_the_name_is_not_found(gateway: Gateway, name: str) -> None:
    """LM-46: given a memory `pump`, when it is asked for in another case, padded or by a look-alike, NOT_FOUND."""
    gateway.remember("a", memory_id="pump")

    with refused("MEMORY_NOT_FOUND"):
        gateway.show(name)


@pytest.mark.parametrize("project", ["Atlas", " atlas", "atlas ", "atla", "atlаs", "atlas:x"])
def test_a_look_alike_project_holds_nothing(open_here: Here, project: str) -> None:
    """LM-35, LM-46: given memories of `atlas`, when a look-alike project asks, then it finds none, and is unknown."""
    made = open_here().remember("a", memory_id="pump")
    stranger = open_here(project=project)

    for reference in ("pump", made.revision_id or ""):
        with refused("MEMORY_NOT_FOUND"):
            stranger.show(reference)
    assert stranger.search("a").hits == ()
    for code, ask in ASKED_OF_A_PROJECT.items():
        for answer in ask(stranger):
            with refused(code) as refusal:
                answer()
            assert project not in refusal.error.message


ASKED_OF_A_PROJECT: dict[str, Callable[[Gateway], Sequence[Callable[[], object]]]] = {
    "MEMORY_NOT_FOUND": lambda gateway: (
        gateway.list_memories,
        gateway.iterate_memories,
        lambda: gateway.diff_between(0, 1),
        lambda: gateway.export_supersession(["pump"], "bundle"),
    ),
    "CORRECTION_NOT_FOUND": lambda gateway: (
        gateway.list_corrections,
        gateway.correction_stats,
        gateway.eval_cases,
    ),
}


def test_a_project_begins_with_what_is_stored_in_it(gateway: Gateway) -> None:
    """LM-35: given a project without any memory or correction, then it is there as soon as anything else is kept."""
    gateway.add_evidence(b"a photograph")

    assert gateway.list_memories().items == ()
    assert gateway.list_corrections() == gateway.eval_cases() == ()
    assert gateway.correction_stats().total == 0
    assert [*gateway.diff_between(0, 1)] == []


@pytest.mark.parametrize("act", EVERY)
def test_an_unknown_id_and_a_foreign_one_are_told_apart_by_nobody(open_here: Here, ledger_url: str, act: str) -> None:
    """RC-12, LM-35: given another project's memory, when it is named, the answer is that of an unknown id."""
    open_here().remember("mine", memory_id="known")
    foreign = open_here(project="borea").remember("theirs", memory_id="theirs")
    gateway = open_here()
    theirs = rows(ledger_url, "SELECT lineage FROM corrigenda.revision WHERE revision = %s", foreign.revision_id)[0][0]
    before = last_position(ledger_url)
    told: set[tuple[str, str]] = set()

    for reference in (foreign.revision_id or "", theirs, "theirs", f"rev_{ULID}", f"mem_{ULID}", "nowhere"):
        with refused("MEMORY_NOT_FOUND") as refusal:
            EVERY[act](gateway, reference)
        told.add((refusal.error.message, str(refusal.details)))

    assert len(told) == 1
    assert last_position(ledger_url) == before


@pytest.mark.parametrize("prefix", ["led", "op", "prj", "pr", "usr", "xx"])
def test_an_id_of_another_kind_is_no_memory(gateway: Gateway, ledger_url: str, prefix: str) -> None:
    """RC-12: given ids of ours that name no memory, the ledger's own included, when they are read, MEMORY_NOT_FOUND."""
    receipt = gateway.remember("a")
    ledger = rows(ledger_url, "SELECT ledger FROM corrigenda.head")[0][0]
    known = {"led": f"led_{ledger}", "op": receipt.trace_id}
    actor, project = (event.facts["id"] for event in written(ledger_url)[1:3])
    known |= {"pr": actor, "prj": project}

    with refused("MEMORY_NOT_FOUND"):
        gateway.show(known.get(prefix, f"{prefix}_{ULID}"))


@pytest.mark.parametrize("read", READS)
def test_reading_assigns_no_name(open_here: Here, ledger_url: str, read: str) -> None:
    """LM-41: given names that nobody used, when they are asked about, then no event is written."""
    open_here().remember("a")
    gateway = open_here(project="elsewhere", actor="human:bo")
    before = last_position(ledger_url)

    with refused("MEMORY_NOT_FOUND"):
        READS[read](gateway, "unheard-of")
    gateway.search("a", agent="nobody", user="noone", session="never")

    assert last_position(ledger_url) == before


@pytest.mark.parametrize("shape", [f"mem_{ULID}", f"rev_{ULID}", f"led_{ULID}", f"prj_{ULID}"])
def test_a_name_in_the_shape_of_our_ids_is_refused(open_here: Here, ledger_url: str, shape: str) -> None:
    """Given a name that looks like an id of ours, when a memory, project or agent is to bear it, nothing is stored."""
    open_here().remember("a")
    before = last_position(ledger_url)

    with refused("VALIDATION_FAILED" if not shape.startswith("mem_") else "MEMORY_NOT_FOUND"):
        open_here().remember("b", memory_id=shape)
    with refused("VALIDATION_FAILED"):
        open_here().remember("b", agent=shape)
    with refused("VALIDATION_FAILED"):
        open_here(project=shape)

    assert last_position(ledger_url) == before


@pytest.mark.parametrize("name", ["", " ", "a b", "ü", "a/b", "x" * 129, "a\n", "a\x00"])
def test_an_id_outside_the_alphabet_is_refused(gateway: Gateway, name: str) -> None:
    """Given an id of other characters or of 129, when a memory is to bear it, then the field is named."""
    gateway.remember("a")

    with refused("VALIDATION_FAILED") as refusal:
        gateway.remember("b", memory_id=name)

    assert [fault["field"] for fault in refusal.details["fields"]] == ["memory_id"]


def test_an_id_of_128_characters_is_taken(gateway: Gateway) -> None:
    """Given an id of exactly 128 characters, when a memory bears it, then it is found by it."""
    name = "A-z0.9_:" * 16
    gateway.remember("a", memory_id=name)

    assert gateway.show(name).content == "a"


def test_an_actor_and_a_project_of_one_name_are_two(open_here: Here, ledger_url: str) -> None:
    """Given one word for project, agent, user and memory, when it is stored, then each kind has a stream of its own."""
    gateway = open_here(project="same", actor="human:same")
    gateway.remember("a", memory_id="same", agent="same", user="same", session="same", task_family="same")

    events = written(ledger_url)
    assert types(events)[1:] == ["name.assigned"] * 7 + ["memory.remembered"]
    assert len({event.stream for event in events}) == 9


def test_a_prefix_completes_to_this_projects_ids_only(open_here: Here) -> None:
    """Given revisions of two projects made at once, when a prefix is completed, then only this project's ids come."""
    mine, other = open_here(), open_here(project="borea")
    first, second = mine.remember("a"), mine.remember("b")
    foreign = other.remember("c")
    shared = (first.revision_id or "")[:10]

    found = mine.complete(shared)

    # Ids that were made around the end of a quarter of an hour begin otherwise.
    assert {one for one in (first.revision_id, second.revision_id) if str(one).startswith(shared)} <= set(found)
    assert foreign.revision_id not in found
    assert mine.complete("rev_01") == mine.complete("pump") == ()
