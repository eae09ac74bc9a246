"""What projectors make of events: the rows of every read model, however the events fall into groups."""

from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from ledger.memories import FRESH, MemoryRetired, MetadataPatched
from ledger.message import HEADLESS
from projections.models import ALL, TABLES
from tests.house import expected_rows, rows
from tests.projecting import LEDGER, Story, after, project, recorded, whole_story
from tests.roles import as_owner

ONE: LiteralString = (
    "INSERT INTO corrigenda.revision (ledger, gen, revision, lineage, project, version, state, trust, floor,"
    " content_seq) VALUES (%(ledger)s, 1, %(revision)s, 'mem_a', 'prj_1', 2, %(state)s, 'unverified', 'verified', 1)"
)


def stored(url: str, gen: int) -> dict[str, set[tuple[object, ...]]]:
    """Return what a generation holds, table by table."""
    return {
        table: set(rows(url, f"SELECT {columns} FROM corrigenda.{table} WHERE gen = %s", gen))  # noqa: S608 - our words
        for table, (columns, _) in expected_rows({}, []).items()
    }


def test_every_event_is_projected_into_every_table(ledger_url: str) -> None:
    """XC-02: each event of a memory and of a correction leaves what a fold of the events says, in groups of one."""
    events = whole_story()
    project(ledger_url, [[item] for item in events])
    found = stored(ledger_url, 1)
    told = expected_rows({}, events)
    assert found.keys() == set(TABLES)
    for table in found.keys() - {"revision"}:
        assert found[table] == set(told[table][1]), table
    revisions = {row[0]: row[3:8] for row in found["revision"]}
    assert revisions["rev_a2"] == ("superseded", "unverified", "verified", 3, 4)
    assert revisions["rev_a5"] == ("active", "unverified", "verified", 11, 11)
    assert revisions["rev_b1"] == ("superseded", "unverified", "verified", 8, 8)
    assert revisions["rev_d2"] == ("active", "unverified", "verified", 16, 16)
    assert revisions["rev_c1"] == ("forgotten", "unverified", "verified", 12, 12)


@pytest.mark.parametrize("size", [2, 3, 7, 1_000])
def test_rows_do_not_depend_on_how_events_fall_into_groups(ledger_url: str, size: int) -> None:
    """XC-02: groups of any size leave the same rows, each written once a group, demotions before promotions."""
    events = whole_story()
    project(ledger_url, [[item] for item in events], gen=1)
    project(ledger_url, [events[at : at + size] for at in range(0, len(events), size)], gen=2)
    assert stored(ledger_url, 1) == stored(ledger_url, 2)


def test_an_edge_between_two_streams_is_one_row(ledger_url: str) -> None:
    """A merge and a split are told in two streams each; the edge between the two is there once."""
    project(ledger_url, [whole_story()])
    found = rows(ledger_url, "SELECT newer, older FROM corrigenda.edge WHERE kind = 'supersedes' AND to_seq IS NULL")
    assert len(found) == len(set(found))
    assert {("rev_a4", "rev_b1"), ("rev_c1", "rev_a4"), ("mem_d", "mem_c")} <= set(found)


def test_a_patch_opens_no_interval(ledger_url: str) -> None:
    """A patch of metadata moves the revision's `meta_seq`, and leaves its interval as it is."""
    story = Story()
    story.remember("mem_a", "rev_a1")
    story.tell("mem_a", MetadataPatched(revision="rev_a1", since=1, standing=HEADLESS))
    project(ledger_url, [[item] for item in story.events])
    assert rows(ledger_url, "SELECT state, content_seq, meta_seq FROM corrigenda.revision") == [("active", 1, 2)]
    assert rows(ledger_url, "SELECT from_seq, to_seq FROM corrigenda.revision_state") == [(1, None)]


@pytest.mark.parametrize("table", ["revision", "revision_state", "correction"])
def test_a_lost_row_is_met_by_the_event_that_changes_it(ledger_url: str, table: str) -> None:
    """An event that changes a row which the read model has lost raises; it must not leave half a row behind."""
    events = whole_story()
    last = {"revision": 9, "revision_state": 9, "correction": len(events) - 1}[table]
    project(ledger_url, [events[:last]])
    with psycopg.connect(as_owner(ledger_url)) as owner:
        owner.execute(sql.SQL("DELETE FROM corrigenda.{}").format(sql.Identifier(table)))
    with pytest.raises(psycopg.DataError, match="PROJECTION_DRIFT"):
        project(ledger_url, [events[last:]])


@pytest.mark.parametrize("act", ["insert", "update"])
def test_the_database_allows_one_head(ledger_url: str, act: str) -> None:
    """LM-43: a second active revision of a lineage is refused to the writer, inserted or updated."""
    story = Story()
    story.remember("mem_a", "rev_a1")
    project(ledger_url, [story.events])
    with psycopg.connect(ledger_url) as writer:
        writer.execute("SELECT set_config('corrigenda.ledger', %s, true)", [LEDGER])
        second = {"ledger": LEDGER, "revision": "rev_a2"}
        if act == "insert":
            with pytest.raises(psycopg.errors.UniqueViolation, match="revision_head"):
                writer.execute(ONE, {**second, "state": "active"})
        else:
            writer.execute(ONE, {**second, "state": "superseded"})
            with pytest.raises(psycopg.errors.UniqueViolation, match="revision_head"):
                writer.execute("UPDATE corrigenda.revision SET state = 'active' WHERE revision = 'rev_a2'")


def test_every_key_of_a_read_model_holds_the_generation(ledger_url: str) -> None:
    """Every unique key of a read model begins with ledger and generation, so that two generations never meet."""
    found = rows(
        ledger_url,
        "SELECT c.relname, i.relname, array_agg(a.attname::text ORDER BY k.place) FROM pg_index x"
        " JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'corrigenda'"
        " CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY k(number, place)"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number"
        " WHERE c.relname = ANY(%s) GROUP BY 1, 2",
        [*TABLES, "rebuild"],
    )
    assert {table for table, _, _ in found} == {*TABLES, "rebuild"}
    assert all(columns[:2] == ["ledger", "gen"] for _, _, columns in found), found


def test_each_table_has_one_projector() -> None:
    """No two projectors write one table, and together they write all: a rebuild of one empties no other."""
    written = [
        {table for table in TABLES if f"INTO corrigenda.{table} " in write.query}
        for projector in ALL
        for write in projector.writes(1, whole_story())
    ]
    assert sorted(table for tables in written for table in tables) == sorted(TABLES)


def test_a_promotion_and_a_demotion_change_places_in_one_group(ledger_url: str) -> None:
    """A head that goes and another that comes back in one group meet no unique index, in whichever order they stand."""
    story = Story()
    story.remember("mem_a", "rev_a1")
    story.correct("mem_a", "rev_a1", "rev_a2")
    project(ledger_url, [story.events])
    back = (story.move("rev_a1", FRESH), story.move("rev_a2", after("retired")))
    group = [recorded(3, "mem_a", MemoryRetired(cause="person", moves=back, standing=HEADLESS))]
    project(ledger_url, [group])
    live = rows(ledger_url, "SELECT revision FROM corrigenda.revision WHERE state = 'active'")
    assert live == [("rev_a1",)]


def test_an_edge_of_another_kind_stays(ledger_url: str) -> None:
    """Publishing ends that a revision was held to replace another, and states that it does; both are kept apart."""
    project(ledger_url, [whole_story()])
    found = rows(ledger_url, "SELECT kind, from_seq, to_seq FROM corrigenda.edge WHERE newer = 'rev_a3' ORDER BY kind")
    assert found == [("proposes", 5, 6), ("supersedes", 6, None)]
