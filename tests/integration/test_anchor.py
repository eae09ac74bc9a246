"""The anchor beside a ledger: what a loss, a rollback or another history comes to, at open, at append and at read.

Whoever changes the tables here may do everything but reach the home. What `verify` says of it is told elsewhere.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql

from corrigenda import CorrigendaError
from gateway.service import Gateway
from gateway.settings import read_settings
from ledger import codec, digest
from ledger.anchor import Anchor, AnchorState, Link, Unusable
from ledger.anchor_file import checksum
from ledger.chain import Entry
from ledger.keys import make_ledger_key, read_ledger_key
from ledger.opening import anchor_path
from ledger.store import Store
from tests.anchors import link
from tests.house import last_position, refused, rows, tamper
from tests.integration.conftest import Here
from tests.roles import as_owner

Act = Callable[[Gateway], object]
ACTS: dict[str, Act] = {
    "search": lambda gateway: gateway.search("office"),
    "show": lambda gateway: gateway.show("office"),
    "explain": lambda gateway: gateway.explain("office"),
    "history": lambda gateway: gateway.history("office"),
    "remember": lambda gateway: gateway.remember("the sea is blue"),
    "correct": lambda gateway: gateway.correct("deploys", "deploys are on Fridays"),
    "replay": lambda gateway: gateway.remember("the office is in Berlin", memory_id="office", idempotency_key="k"),
    "recover": lambda gateway: gateway.recover(),
}
TABLES = ("event", "payload", "outbox", "revision", "directory", "head", "embedding")


class Tables:
    """Copies of a ledger's tables, which may be put back as a backup would."""

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(as_owner(url)) as connection:
            self._rows = {name: connection.execute(self._select(name)).fetchall() for name in TABLES}

    def put_back(self) -> None:
        """Make the tables what they were when they were copied."""
        with psycopg.connect(as_owner(self._url)) as connection:
            connection.execute("SET session_replication_role = replica")
            for name, found in self._rows.items():
                table = sql.Identifier(name)
                connection.execute(sql.SQL("DELETE FROM corrigenda.{}").format(table))
                for row in found:
                    places = sql.SQL(", ").join([sql.Placeholder()] * len(row))
                    connection.execute(sql.SQL("INSERT INTO corrigenda.{} VALUES ({})").format(table, places), row)

    @staticmethod
    def _select(name: str) -> sql.Composed:
        return sql.SQL("SELECT * FROM corrigenda.{}").format(sql.Identifier(name))


def anchor_of(here: Here) -> Path:
    """Return the path of the ledger's anchor in this home."""
    (ledger,) = rows(here.ledger_url, "SELECT ledger FROM corrigenda.head")[0]
    return anchor_path(read_settings(home=here.home).anchors, ledger)


def looked_at(here: Here, path: Path | None = None) -> Anchor:
    """Open the ledger's anchor to look at it."""
    ((ledger, envelope),) = rows(here.ledger_url, "SELECT ledger, envelope FROM corrigenda.event WHERE seq = 0")
    return Anchor.find(path or anchor_of(here), ledger=ledger, origin=codec.decode_envelope(bytes(envelope)).log)


def state_of(here: Here) -> AnchorState:
    """Return how far the anchor in this home reaches."""
    anchor = looked_at(here)
    try:
        return anchor.state()
    finally:
        anchor.close()


def cut(here: Here, size: int) -> None:
    """Leave the first `size` events, and a head that fits them."""
    ((hash_,),) = rows(here.ledger_url, "SELECT hash FROM corrigenda.event WHERE seq = %s", size - 1)
    with psycopg.connect(as_owner(here.ledger_url)) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in ("event", "payload", "outbox", "directory"):
            named = sql.SQL("DELETE FROM corrigenda.{} WHERE seq >= %s").format(sql.Identifier(table))
            connection.execute(named, [size])
        connection.execute("UPDATE corrigenda.head SET (seq, hash) = (%s, %s)", [size - 1, hash_])


def lost(act: Callable[[], object], size: int) -> None:
    """Expect a loss to be told: as the anchor's finding, with the first position that is missing, by exit 11."""
    with refused("INTEGRITY_BROKEN") as refusal:
        act()
    found = refusal.details["check"], refusal.details["position"], refusal.error.exit_code
    assert found == ("anchor", size, 11), refusal.error.message


@pytest.fixture
def begun(open_here: Here) -> Here:
    """A ledger of three memories and a correction, with no gateway open on it."""
    with open_here() as gateway:
        gateway.remember("the office is in Berlin", memory_id="office", idempotency_key="k")
        gateway.remember("deploys are on Tuesdays", memory_id="deploys")
        gateway.correct("office", "the office is in Hamburg")
        gateway.remember("the moon is a rock", memory_id="moon")
    return open_here


# ---------------------------------------------------------------- a loss


@pytest.mark.parametrize("act", ACTS)
def test_a_cut_tail_is_told_by_a_running_process(begun: Here, act: str) -> None:
    """Given a tail cut and the head set back to match, a process that was there refuses each act and stores nothing."""
    gateway = begun()
    begun.broken = True
    size = last_position(begun.ledger_url)
    cut(begun, size)
    lost(lambda: ACTS[act](gateway), size)
    assert last_position(begun.ledger_url) == size - 1
    lost(begun, size)


@pytest.mark.parametrize("act", ACTS)
def test_a_cut_is_told_by_a_process_that_had_not_seen_the_rest(begun: Here, act: str) -> None:
    """A process that stood where the ledger was cut back to is told by the anchor what others had written."""
    idle = begun()
    size = last_position(begun.ledger_url) + 1
    with begun() as other:
        other.remember("the sea is green")
    begun.broken = True
    cut(begun, size)
    lost(lambda: ACTS[act](idle), size)
    assert last_position(begun.ledger_url) == size - 1
    assert rows(begun.ledger_url, "SELECT max(seq) FROM corrigenda.event") == [(size - 1,)]


def test_a_head_that_was_cut(begun: Here) -> None:
    """Given the first events removed, nothing opens, and a running process serves nothing that began there."""
    gateway = begun()
    begun.broken = True
    tamper(begun.ledger_url, ("DELETE FROM corrigenda.event WHERE seq < 3", []))
    with refused("INTEGRITY_BROKEN"):
        gateway.show("office")
    with refused("INTEGRITY_BROKEN"):
        begun()


def test_an_old_backup_is_told_and_the_newest_one_heals(begun: Here) -> None:
    """Tables put back to what they were are a loss, whoever looks; put forward again, all is as before."""
    old = Tables(begun.ledger_url)
    size = last_position(begun.ledger_url) + 1
    gateway = begun()
    gateway.revoke("moon", reason="poison")
    gateway.remember("the sea is green")
    new = Tables(begun.ledger_url)
    old.put_back()
    for act in ACTS.values():
        lost(lambda act=act: act(gateway), size)
    lost(begun, size)
    with refused("INTEGRITY_BROKEN") as refusal:
        begun()
    assert "no way yet to accept a copy that ends earlier" in refusal.error.message
    new.put_back()
    assert gateway.show("office").content == "the office is in Hamburg"
    assert gateway.remember("and there is life in it").warnings == ()


def test_a_backup_that_went_on_elsewhere(begun: Here) -> None:
    """An old backup on which another home wrote to a greater length is another history, and nothing is added to it."""
    old = Tables(begun.ledger_url)
    gateway = begun()
    gateway.revoke("moon", reason="poison")
    old.put_back()
    elsewhere = _with_the_keys(begun)
    with elsewhere() as other:
        for number in range(4):
            other.remember(f"text {number}")
    elsewhere.close()
    begun.broken = True
    size = last_position(begun.ledger_url)
    for act in ACTS.values():
        with refused("INTEGRITY_BROKEN"):
            act(gateway)
    with refused("INTEGRITY_BROKEN"):
        begun()
    assert last_position(begun.ledger_url) == size


def _with_the_keys(here: Here) -> Here:
    """Return another home with the same keys, and an anchor of its own."""
    home = here.home.with_name("elsewhere")
    home.mkdir(mode=0o700)
    shutil.copytree(here.home / "keys", home / "keys")
    return Here(here.ledger_url, home)


@pytest.mark.parametrize("from_last", [1, 2, 4])
def test_a_full_rechain_with_the_key(begun: Here, from_last: int) -> None:
    """Given an event changed and every link and seal made again, the leaves still differ: nothing is served of it."""
    gateway = begun()
    begun.broken = True
    position = last_position(begun.ledger_url) + 1 - from_last
    rechain(begun, position)
    for act in ("remember", "correct"):
        with refused("INTEGRITY_BROKEN"):
            ACTS[act](gateway)
    with refused("INTEGRITY_BROKEN"):
        begun()
    (begun.home / "anchor").rename(begun.home / "away")
    assert begun().show("office").content == "the office is in Hamburg"  # without the anchor it is a ledger like any


def rechain(here: Here, first: int) -> None:
    (ledger,) = rows(here.ledger_url, "SELECT ledger FROM corrigenda.head")[0]
    keys = read_ledger_key(here.home / "keys" / "ledger.key").for_ledger(ledger)
    previous, ends = digest.GENESIS, dict[str, bytes]()
    for seq, raw in rows(here.ledger_url, "SELECT seq, envelope FROM corrigenda.event ORDER BY seq"):
        envelope, raw = codec.decode_envelope(bytes(raw)), bytes(raw)
        if seq >= first:
            changed = {"authn": "token"} if seq == first else {}
            linked: dict[str, Any] = {
                "prev_b3": previous.hex(),
                "stream_prev_b3": ends.get(envelope.stream, digest.GENESIS).hex(),
            }
            raw = codec.encode_envelope(msgspec.structs.replace(envelope, **linked, **changed))
            own = digest.link(raw)
            update = "UPDATE corrigenda.event SET (envelope, hash, seal) = (%s, %s, %s) WHERE seq = %s"
            tamper(here.ledger_url, (update, [raw, own, keys.seal(own), seq]))
        previous, ends[envelope.stream] = digest.link(raw), digest.stream_link(raw)
    tamper(here.ledger_url, ("UPDATE corrigenda.head SET hash = %s", [previous]))


# ---------------------------------------------------------------- no loss


def test_whoever_is_overtaken_while_it_follows_raises_no_alarm(begun: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given another process that appends, and is anchored, after the head was read here, then nothing was lost."""
    reader, writer, elsewhere = begun(), begun(), _with_the_keys(begun)
    elsewhere().remember("the sea is green")  # not anchored here: there is something to follow
    elsewhere.close()
    real, overtaken = Store.tip, list[int]()

    def tip(self: Store, position: int, *given: Any) -> Any:
        found = real(self, position, *given)
        if not overtaken:
            overtaken.append(position)
            writer.remember("and there is life in it", memory_id="life")
        return found

    monkeypatch.setattr(Store, "tip", tip)
    assert reader.show("life").content == "and there is life in it"
    assert overtaken


# ---------------------------------------------------------------- above the anchor


@pytest.mark.parametrize("seal", ["another key's", "none", "the event's before it"])
def test_what_is_above_the_anchor_is_followed_only_if_it_is_sealed(begun: Here, tmp_path: Path, seal: str) -> None:
    """Given an anchor that is behind and a forged event above it, then it ends where the sealed events end."""
    size = last_position(begun.ledger_url) + 1
    gateway = begun()
    begun.broken = True
    (ledger,) = rows(begun.ledger_url, "SELECT ledger FROM corrigenda.head")[0]
    ((raw, old_seal),) = rows(begun.ledger_url, "SELECT envelope, seal FROM corrigenda.event WHERE seq = %s", size - 1)
    last = codec.decode_envelope(bytes(raw))
    forged = msgspec.structs.replace(
        last, seq=size, prev_b3=digest.link(bytes(raw)).hex(), stream_seq=last.stream_seq + 1, request=None,
        request_fp=None, stream_prev_b3=digest.stream_link(bytes(raw)).hex(), payload_len=None, payload_sha256=None,
        op_count=1, op_index=0,
    )  # fmt: skip
    bytes_ = codec.encode_envelope(forged)
    foreign = make_ledger_key(tmp_path / "other.key").for_ledger(ledger)
    seals = {"another key's": foreign.seal(digest.link(bytes_)), "none": b"", "the event's before it": bytes(old_seal)}
    insert = (
        "INSERT INTO corrigenda.event (ledger, seq, stream, stream_seq, envelope, hash, seal)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)"
    )
    values = [ledger, size, forged.stream, forged.stream_seq, bytes_, digest.link(bytes_), seals[seal]]
    tamper(
        begun.ledger_url,
        (insert, values),
        ("UPDATE corrigenda.head SET (seq, hash) = (%s, %s)", [size, digest.link(bytes_)]),
    )
    for act in (begun, *(lambda name=name: ACTS[name](gateway) for name in ("search", "remember", "explain"))):
        with refused("INTEGRITY_BROKEN") as refusal:
            act()
        assert (refusal.details["position"], refusal.details["check"]) == (size, "seals")
    assert state_of(begun).size == size
    assert last_position(begun.ledger_url) == size


def test_an_anchor_that_is_behind_is_caught_up(begun: Here, tmp_path: Path) -> None:
    """An older copy of the anchor is brought up to the head by the next open, without a word."""
    path = anchor_of(begun)
    shutil.copy(path, tmp_path / "older")
    before = state_of(begun)
    with begun() as gateway:
        gateway.remember("the sea is green")
    shutil.copy(tmp_path / "older", path)
    assert state_of(begun) == before
    with begun() as gateway:
        assert state_of(begun).size == last_position(begun.ledger_url) + 1 > before.size
        assert gateway.remember("and there is life in it").warnings == ()


# ---------------------------------------------------------------- how trust begins


def test_whoever_makes_the_ledger_trusts_it_from_its_opening(open_here: Here) -> None:
    """The process that wrote event 0 has seen everything: the anchor says `opening`, and never less afterwards."""
    for _ in range(2):
        with open_here() as gateway:
            gateway.remember("the office is in Berlin")
        assert state_of(open_here).trust == "opening"


def test_a_missing_anchor_is_trust_on_first_use_and_says_so(begun: Here) -> None:
    """Given an anchor moved away, a new one is built of what there is, and says that it has seen nothing before."""
    away = begun.home / "away"
    (begun.home / "anchor").rename(away)
    with begun() as gateway:
        gateway.remember("the sea is green")
    found = state_of(begun)
    assert (found.trust, found.size) == ("first_use", last_position(begun.ledger_url) + 1)
    shutil.rmtree(begun.home / "anchor")
    away.rename(begun.home / "anchor")
    with begun() as gateway:
        gateway.show("office")
    found = state_of(begun)
    assert (found.trust, found.size) == ("opening", last_position(begun.ledger_url) + 1)


def test_an_anchor_put_back_finds_what_was_lost_while_it_was_away(begun: Here) -> None:
    """What a new anchor could not know, the old one tells as soon as it is back."""
    size = last_position(begun.ledger_url) + 1
    (begun.home / "anchor").rename(begun.home / "away")
    begun.broken = True
    cut(begun, size - 2)
    with begun() as gateway:
        gateway.show("office")
    shutil.rmtree(begun.home / "anchor")
    (begun.home / "away").rename(begun.home / "anchor")
    lost(begun, size - 2)


def test_each_home_has_an_anchor_of_its_own(begun: Here) -> None:
    """Two homes on one ledger raise no false alarm, and each tells a loss by what it has seen itself."""
    elsewhere = _with_the_keys(begun)
    here, there = begun(), elsewhere()
    for turn in range(3):
        here.remember(f"here {turn}")
        there.remember(f"there {turn}")
    assert here.show("office").position == there.show("office").position
    size = last_position(begun.ledger_url) + 1
    assert (state_of(begun).trust, state_of(elsewhere).trust) == ("opening", "first_use")
    assert state_of(begun).size == state_of(elsewhere).size == size
    begun.broken = True
    cut(begun, size - 1)
    lost(lambda: here.show("office"), size - 1)
    lost(lambda: there.show("office"), size - 1)
    elsewhere.close()


def test_the_anchor_lies_where_it_is_told_to(open_here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With CORRIGENDA_ANCHOR, the folder is that one, made with mode 0700; the home has none."""
    folder = tmp_path / "elsewhere" / "anchors"
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(folder))
    open_here().remember("the office is in Berlin")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.suffix for file in folder.glob("*.sqlite")] == [".sqlite"]
    assert not (open_here.home / "anchor").exists()


# ---------------------------------------------------------------- not the one that was kept


def test_a_head_row_of_another_incarnation_is_the_anchors_finding(begun: Here) -> None:
    """A running process that meets another incarnation neither serves nor writes; with the right one it goes on."""
    gateway = begun()
    tamper(begun.ledger_url, ("UPDATE corrigenda.head SET incarnation = 7", []))
    for act in ACTS.values():
        with refused("INTEGRITY_BROKEN") as refusal:
            act(gateway)
        assert (refusal.details["check"], refusal.error.exit_code) == ("anchor", 11)
    tamper(begun.ledger_url, ("UPDATE corrigenda.head SET incarnation = 1", []))
    assert gateway.remember("the sea is green").incarnation == 1


def test_an_anchor_that_names_an_older_event_serves_no_older_standing(begun: Here) -> None:
    """Given an anchor damaged so that a stream ends at an earlier event of its own, then that one is not believed."""
    gateway = begun()
    gateway.revoke("office", reason="poison")
    anchor = looked_at(begun)
    streams = [stream for (stream,) in vars(anchor)["_connection"].execute("SELECT stream FROM stream")]
    ends = {name: end for name, end in anchor.known(streams, [])[0].items() if name.startswith("mem_")}
    office = next(name for name, end in ends.items() if end.version == 3)
    older = (2, 4)
    crc = checksum(office, *older, ends[office].hash.hex())
    vars(anchor)["_connection"].execute(
        "UPDATE stream SET version = ?, position = ?, crc = ? WHERE stream = ?", (*older, crc, office)
    )
    anchor.close()
    begun.broken = True
    for act in ("search", "show", "history", "explain"):
        with refused("INTEGRITY_BROKEN"):
            ACTS[act](gateway)


@pytest.mark.parametrize("damage", ["noise", "another ledger's", "cut", "empty", "a folder", "a link"])
def test_an_anchor_that_is_not_what_was_kept_is_named(
    begun: Here, tmp_path: Path, damage: str, act: str = "show"
) -> None:
    """Given a file that cannot be trusted, nothing opens, by exit 11 and with its path; put right, all is as before."""
    path = anchor_of(begun)
    kept = path.rename(tmp_path / "kept")
    whole = kept.read_bytes()
    match damage:
        case "noise":
            path.write_bytes(bytes(byte ^ 0x5A for byte in whole))
        case "another ledger's":
            Anchor.open(path, ledger="01JZ8Q0000000000000000000Z", origin="elsewhere").close()
        case "cut":
            path.write_bytes(whole[: len(whole) // 2])
        case "empty":
            path.write_bytes(b"")
        case "a folder":
            path.mkdir()
        case _:
            path.symlink_to(kept)
    if path.is_file() and not path.is_symlink():
        path.chmod(0o600)
    with refused("INTEGRITY_BROKEN") as refusal:
        begun()
    assert refusal.error.exit_code == 11
    assert (refusal.details["check"], refusal.details["file"]) == ("anchor", str(path))
    assert str(path) in refusal.error.message
    path.rmdir() if damage == "a folder" else path.unlink()
    kept.rename(path)
    assert ACTS[act](begun())


def test_an_anchor_that_holds_another_history_is_named(begun: Here) -> None:
    """Given a file that holds an entry which the ledger has not, nothing is served, and the entry has a position."""
    path = anchor_of(begun)
    anchor = looked_at(begun)
    state = anchor.state()
    anchor.extend([_made_up(state.size)])
    anchor.close()
    begun.broken = True
    lost(begun, state.size)
    assert path.exists()


def _made_up(position: int) -> Link:
    return link(position)


def test_a_closed_gateway_is_closed_and_not_broken(begun: Here) -> None:
    """Whoever asks a closed gateway is told that it does not answer: the ledger is as it was."""
    gateway = begun()
    gateway.close()
    for act in ("show", "search", "remember"):
        try:
            ACTS[act](gateway)
        except CorrigendaError as error:
            assert error.code == "UNAVAILABLE"


# ---------------------------------------------------------------- interrupted


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_interrupt_while_following_leaves_nothing_half_taken(
    begun: Here, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Given a signal after an entry was taken and before the head moved, the next call follows as if nothing was."""
    reader, elsewhere = begun(), _with_the_keys(begun)
    with elsewhere() as other:
        done = [other.remember(f"text {number}") for number in range(3)]
    elsewhere.close()
    real, links = Link.of, list[int]()

    class Struck(tuple[str, ...]):
        """What is read of a link when all but the head has been moved: then the signal comes."""

        def __iter__(self) -> Iterator[str]:
            raise KeyboardInterrupt

    def of(entry: Entry) -> Link:
        links.append(entry.position)
        return msgspec.structs.replace(real(entry), revisions=Struck()) if len(links) == nth else real(entry)

    monkeypatch.setattr(Link, "of", of)
    with pytest.raises(KeyboardInterrupt):
        reader.show("office")
    assert len(links) == nth
    assert reader.explain(done[-1].revision_id or "").content == "text 2"
    assert reader.remember("and one more").warnings == ()
    anchor = looked_at(begun)
    anchor.examine()
    assert anchor.state().size == last_position(begun.ledger_url) + 1
    anchor.close()


def test_an_anchor_that_is_ruined_while_it_is_used_stops_the_next_write(begun: Here) -> None:
    """Given a row that is not what was written, the next write is refused for it, and nothing is stored."""
    gateway = begun()
    begun.broken = True
    before = last_position(begun.ledger_url)
    anchor = looked_at(begun)
    vars(anchor)["_connection"].execute("UPDATE meta SET trust = 'opening' || trust")
    anchor.close()
    with refused("INTEGRITY_BROKEN") as refusal:
        gateway.remember("the sea is green")
    assert (refusal.details["check"], refusal.error.exit_code) == ("anchor", 11)
    assert rows(begun.ledger_url, "SELECT max(seq) FROM corrigenda.event") == [(before,)]


def test_a_write_that_was_stored_is_not_denied_by_an_anchor_that_fails_then(
    begun: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an anchor that is found ruined after the commit, the answer is success with the warning."""
    gateway = begun()

    def ruined(self: Anchor, links: Sequence[Link]) -> None:
        raise Unusable("is damaged")

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "extend", ruined)
        done = gateway.remember("the sea is green")
    assert (done.outcome, done.warnings) == ("stored", ("unanchored: the anchor is damaged",))
    assert done.position == last_position(begun.ledger_url)
