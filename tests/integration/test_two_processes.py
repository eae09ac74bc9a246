"""Two processes on one ledger: what one does, the other follows before it answers or decides; and nobody forks it."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pytest
from psycopg.pq import TransactionStatus

from corrigenda import ConflictError, CorrigendaError, Receipt
from gateway.bootstrap import open_bare
from gateway.service import Gateway
from ledger.flush import Flush
from ledger.store import QUERIES, Store, Write
from tests.house import last_position, refused, rows, tamper, types, written
from tests.integration.conftest import Here
from tests.integration.other_process import answer

SCRIPT = Path(__file__).with_name("other_process.py")
DEADLINE_S = 30


class Other:
    """A process of ours with a gateway on the same ledger."""

    def __init__(self, here: Here, actor: str = "human:bo") -> None:
        root = str(SCRIPT.parents[2])
        self._process = subprocess.Popen(
            [sys.executable, SCRIPT, here.ledger_url, here.home, actor],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root, env={"PYTHONPATH": root},
        )  # fmt: skip
        assert self.answer() == {"ok": "open"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=DEADLINE_S)
        assert self._process.returncode == 0

    def ask(self, method: str, *args: Any, **keywords: Any) -> None:
        """Send one act, without waiting for its answer."""
        assert self._process.stdin is not None
        print(json.dumps([method, args, keywords]), file=self._process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        """Wait for the answer to the oldest act that has none."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the other process died"
        return json.loads(line)

    def do(self, method: str, *args: Any, **keywords: Any) -> dict[str, Any]:
        """Send one act and wait for its answer."""
        self.ask(method, *args, **keywords)
        return self.answer()


@pytest.fixture
def other(gateway: Gateway, open_here: Here) -> Iterator[Other]:
    """Return another process on the same ledger, as Bo; it has read the memory m."""
    gateway.remember("the bridge is open", memory_id="m")
    with Other(open_here) as process:
        assert "ok" in process.do("show", "m")
        yield process


@pytest.mark.parametrize("act", ["revoke", "retire", "correct"])
def test_what_another_process_withdrew_is_not_served(gateway: Gateway, other: Other, act: str) -> None:
    """XC-08, RC-05: given a gateway that served A, when another process withdraws A, the next search is without it."""
    assert [hit.content for hit in gateway.search("bridge").hits] == ["the bridge is open"]

    done = other.do(act, "m", **{"revoke": {"reason": "flood"}, "retire": {}, "correct": {"content": "shut"}}[act])
    assert "ok" in done

    found = gateway.search("bridge")
    assert [hit.content for hit in found.hits] == (["shut"] if act == "correct" else [])
    assert found.position >= done["ok"][2]


def test_a_decision_follows_what_another_process_did(gateway: Gateway, other: Other) -> None:
    """RC-09, RC-13: given A read here, when another process corrects it, this one is told the head."""
    a = gateway.show("m").revision_id
    b = other.do("correct", "m", "the bridge is shut")["ok"][0]

    with refused("MEMORY_ALREADY_SUPERSEDED") as refusal:
        gateway.correct(a, "the bridge is narrow")

    assert (refusal.details["superseded_by"], refusal.details["head"]) == ([b], b)
    assert gateway.explain("m").head == b


def test_what_is_written_here_is_followed_there(gateway: Gateway, other: Other) -> None:
    """XC-08: given acts that take turns in two processes, then the lineage has all in order."""
    for turn in range(4):
        gateway.correct("m", f"here {turn}")
        assert "ok" in other.do("correct", "m", f"there {turn}")

    texts = [item.content for item in gateway.history("m").items[1:]]
    assert texts == [f"{place} {turn}" for turn in range(4) for place in ("here", "there")]
    gateway.revoke("m", reason="enough")
    assert other.do("correct", "m", "more")["code"] == "INVALID_TRANSITION"


def test_entries_that_others_anchor_while_one_follows_are_no_loss(
    gateway: Gateway, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given two appends elsewhere, after the anchor and after the head were read here, then nothing is called lost."""
    read, appends = Store.tip, iter(("before the head", "before the page"))

    def interrupted(store: Store, position: int, limit: int, *given: Any) -> Any:
        if (text := next(appends, None)) is None:
            return read(store, position, limit, *given)
        assert "ok" in other.do("correct", "m", text)
        row, last, _, *beside = read(store, position, limit, *given)
        assert "ok" in other.do("correct", "m", next(appends))
        return row, last, store.after(position, limit), *beside

    monkeypatch.setattr(Store, "tip", interrupted)

    assert gateway.show("m").content == "before the page"


def test_names_given_elsewhere_are_known_here(gateway: Gateway, other: Other) -> None:
    """Given a name that another process assigned, when it is used here, it is the same memory, user and actor."""
    other.do("remember", "a", memory_id="theirs", visibility="user", user="u")

    assert gateway.show("theirs").content == "a"
    assert [hit.memory_id for hit in gateway.search("a", user="u", k=1).hits] == ["theirs"]
    assert gateway.explain("theirs").audit[0].actor == "human:bo"
    with refused("STALE_PREDECESSOR"):
        gateway.remember("b", memory_id="theirs")


def test_a_key_is_one_key_in_two_processes(open_here: Here, ledger_url: str) -> None:
    """RC-14, RC-23: given one request with one key by one actor, when two processes send it, it is done once."""
    mine = open_here().remember("a", idempotency_key="k")
    size = last_position(ledger_url)

    with Other(open_here, "human:ana") as process:
        assert process.do("remember", "a", idempotency_key="k")["ok"][0] == mine.revision_id
        assert process.do("remember", "b", idempotency_key="k")["code"] == "IDEMPOTENCY_KEY_REUSED"

    assert last_position(ledger_url) == size


def test_of_corrections_at_once_one_wins(gateway: Gateway, open_here: Here, ledger_url: str) -> None:
    """RC-13, LM-33, LM-43: given A, when threads and processes correct it at once, then one wins."""
    a = gateway.remember("A", memory_id="m").revision_id or ""
    processes = [Other(open_here), Other(open_here, "human:cy")]
    threads = [open_here(), open_here(), gateway]
    answers: list[Receipt | CorrigendaError] = []
    gate = threading.Barrier(len(threads) + 1)

    def correct(number: int, by: Gateway) -> None:
        gate.wait(DEADLINE_S)
        try:
            answers.append(by.correct(a, f"thread {number}"))
        except ConflictError as error:
            answers.append(error)

    running = [threading.Thread(target=correct, args=item) for item in enumerate(threads)]
    for thread in running:
        thread.start()
    gate.wait(DEADLINE_S)
    for number, process in enumerate(processes):
        process.ask("correct", a, f"process {number}")
    for thread in running:
        thread.join(DEADLINE_S)
    told = [process.answer() for process in processes]
    for process in processes:
        process.__exit__()

    codes = [answer.code for answer in answers if isinstance(answer, CorrigendaError)]
    codes += [answer["code"] for answer in told if "code" in answer]
    assert codes == ["MEMORY_ALREADY_SUPERSEDED"] * 4
    first, second = gateway.history("m").items
    assert first.superseded_by == (second.revision_id,)
    assert [seq for (seq,) in rows(ledger_url, "SELECT seq FROM corrigenda.event ORDER BY seq")] == [
        *range(last_position(ledger_url) + 1)
    ]


@pytest.mark.parametrize("rounds", [4, pytest.param(100, marks=pytest.mark.soak)])
def test_of_eight_contenders_one_wins_and_seven_are_told_who(
    gateway: Gateway, other: Other, open_here: Here, rounds: int
) -> None:
    """RC-13: given one head, when 4 threads in each of 2 processes correct it, one wins, and 7 are told which."""
    mine = [gateway, open_here(actor="human:cy")]
    heads = [gateway.show("m").revision_id]
    for turn in range(rounds):
        other.ask("at_once", heads[-1], [f"there {turn} {number}" for number in range(4)])
        with ThreadPoolExecutor(4) as threads:
            wishes = [(mine[number % 2], "correct", (heads[-1], f"here {turn} {number}"), {}) for number in range(4)]
            told = list(threads.map(lambda wish: answer(*wish), wishes))
        told += other.answer()["ok"]

        (winner,) = [one["ok"][0] for one in told if "ok" in one]
        lost = [(one["code"], one["details"]["superseded_by"]) for one in told if "code" in one]
        assert lost == [("MEMORY_ALREADY_SUPERSEDED", [winner])] * 7
        heads.append(winner)

    chain = gateway.history("m").items
    assert [item.revision_id for item in chain] == heads
    assert [item.superseded_by for item in chain] == [*((head,) for head in heads[1:]), ()]


def test_many_writers_leave_no_gap(open_here: Here, ledger_url: str) -> None:
    """LM-42, XC-01: given writers in three gateways and a process, when all write, positions and versions are dense."""
    gateways = [open_here(), open_here(actor="human:cy"), open_here(actor="agent:scout")]
    gateways[0].remember("seed", memory_id="m")
    failed: list[BaseException] = []

    def write(number: int, by: Gateway) -> None:
        try:
            for turn in range(8):
                by.remember(f"text {number} {turn}", memory_id=f"m-{number}-{turn % 4}-{turn // 4}")
        except BaseException as error:
            failed.append(error)

    with Other(open_here) as process:
        for turn in range(8):
            process.ask("remember", f"process {turn}", memory_id=f"p-{turn}")
        threads = [threading.Thread(target=write, args=item) for item in enumerate(gateways)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert all("ok" in process.answer() for _ in range(8))

    assert failed == []
    events = written(ledger_url)
    assert [event.seq for event in events] == [*range(len(events))]
    assert types(events).count("memory.remembered") == 33
    assert len(gateways[0].search("text process seed", k=50).hits) == 33


def test_links_from_two_sides_make_no_circle(gateway: Gateway, other: Other) -> None:
    """RC-36: given a over b stated in another process, when b over a is stated here, then it is refused."""
    for name in "ab":
        gateway.remember(name, memory_id=name)
    assert "ok" in other.do("link", "a", "b")

    with refused("INVALID_TRANSITION"):
        gateway.link("b", "a")


@pytest.fixture
def rolled_back(open_here: Here, ledger_url: str) -> Gateway:
    """Return a gateway that has seen more events than the database holds now: it was restored to an older state."""
    gateway = open_here()
    gateway.remember("kept", memory_id="m")
    kept = rows(ledger_url, "SELECT seq, hash FROM corrigenda.head")[0]
    lost = gateway.remember("lost")
    assert len(gateway.search("kept lost").hits) == 2
    open_here.broken = True
    tamper(
        ledger_url,
        ("DELETE FROM corrigenda.event WHERE seq > %s", [kept[0]]),
        ("DELETE FROM corrigenda.payload WHERE seq > %s", [kept[0]]),
        ("DELETE FROM corrigenda.outbox WHERE seq > %s", [kept[0]]),
        ("DELETE FROM corrigenda.revision WHERE revision = %s", [lost.revision_id]),
        ("UPDATE corrigenda.head SET seq = %s, hash = %s", kept),
    )
    return gateway


EVERYTHING = {
    "remember": lambda gateway: gateway.remember("x"),
    "correct": lambda gateway: gateway.correct("m", "x"),
    "retire": lambda gateway: gateway.retire("m"),
    "revoke": lambda gateway: gateway.revoke("m", reason="r"),
    "search": lambda gateway: gateway.search("kept"),
    "show": lambda gateway: gateway.show("m"),
    "explain": lambda gateway: gateway.explain("m"),
    "history": lambda gateway: gateway.history("m"),
    "lineage": lambda gateway: gateway.lineage("m"),
    "recover": lambda gateway: gateway.recover(),
    "events": lambda gateway: list(gateway.events()),
}


def test_a_database_set_back_under_a_running_process_is_noticed(rolled_back: Gateway, ledger_url: str) -> None:
    """OH-23: given a database restored to an older state, when a process that saw more asks, then INTEGRITY_BROKEN."""
    before = last_position(ledger_url)

    for act, ask in EVERYTHING.items():
        with refused("INTEGRITY_BROKEN") as refusal:
            ask(rolled_back)
        assert refusal.details["position"] == before + 1, act
        assert (refusal.details["check"], refusal.error.exit_code) == ("anchor", 11), act

    assert last_position(ledger_url) == before


def test_another_past_of_the_same_length_is_noticed(
    rolled_back: Gateway, open_here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OH-23: given a restored database that another host wrote to again, when the old one asks, INTEGRITY_BROKEN."""
    with refused("INTEGRITY_BROKEN"):
        open_here()
    monkeypatch.setenv("CORRIGENDA_ANCHOR", str(tmp_path / "elsewhere"))
    newcomer = open_here()
    newcomer.remember("another past")

    for act in ("search", "remember", "show"):
        with refused("INTEGRITY_BROKEN"):
            EVERYTHING[act](rolled_back)
    newcomer.remember("longer by now")
    with refused("INTEGRITY_BROKEN"):
        rolled_back.search("kept")
    assert newcomer.search("another past").hits


FLIP = "UPDATE corrigenda.event SET envelope = set_byte(envelope, 30, get_byte(envelope, 30) # 1) WHERE seq = %s"
UNSEAL = "UPDATE corrigenda.event SET seal = set_byte(seal, 9, 255 - get_byte(seal, 9)) WHERE seq = %s"
REMOVE = "DELETE FROM corrigenda.event WHERE seq = %s"


@pytest.mark.parametrize(("statement", "check"), [(FLIP, "chain"), (UNSEAL, "seals"), (REMOVE, "chain")])
def test_on_a_broken_chain_only_what_tells_of_it_answers(
    open_here: Here, ledger_url: str, statement: str, check: str
) -> None:
    """OH-45, XC-03: given a broken chain, verify, log, raw, status, db, doctor answer; what reads it is refused."""
    gateway = open_here()
    position = gateway.remember("broken", memory_id="m").position
    gateway.remember("after it")
    open_here.close()
    open_here.broken = True
    tamper(ledger_url, (statement, [position]))

    _assert_refused(lambda: open_here().show("m"), position)
    _assert_refused(lambda: open_here().correct("m", "x"), position)
    (open_here.home / "anchor").rename(open_here.home / "anchor-that-was")
    _assert_refused(open_here, position)
    with open_bare(database_url=ledger_url, home=open_here.home, create=False) as bare:
        report = bare.verify()
        assert (report.ok, report.exit_code) == (False, 10)
        assert report.checks[check].status == "failed"
        assert min(item.first_bad_position or position for item in report.checks.values()) == position
        assert len(list(bare.log())) == len(rows(ledger_url, "SELECT seq FROM corrigenda.event"))
        assert bare.status().ledger["chain"] == "broken"
        assert bare.schema_check()["ok"]
        assert bare.database_url() == ledger_url
        assert {name for name, well, _, _ in bare.doctor() if not well} - {"installation"} == {"chain"}
        if statement != REMOVE:
            (stored,) = rows(ledger_url, "SELECT envelope FROM corrigenda.event WHERE seq = %s", position)[0]
            assert bare.raw(position) == stored


def _assert_refused(ask: Callable[[], object], position: int) -> None:
    with refused("INTEGRITY_BROKEN") as refusal:
        ask()
    assert refusal.details["position"] == position
    assert refusal.error.exit_code == 10
    assert str(position) in refusal.error.message


def test_a_process_that_runs_already_stops_at_a_break_above_it(open_here: Here, ledger_url: str) -> None:
    """XC-03: given a running gateway, when a foreign event is put above its head, it serves nothing with it."""
    gateway = open_here()
    gateway.remember("text", memory_id="m")
    open_here.broken = True
    copy = (
        "INSERT INTO corrigenda.event SELECT ledger, seq + 1, 'mem_X', 0, envelope, hash, seal, NULL"
        " FROM corrigenda.event WHERE seq = %s"
    )
    before = last_position(ledger_url)
    tamper(ledger_url, (copy, [before]), ("UPDATE corrigenda.head SET seq = seq + 1", []))

    for act in ("search", "show", "correct", "remember"):
        with refused("INTEGRITY_BROKEN") as refusal:
            EVERYTHING[act](gateway)
        assert refusal.details["position"] == before + 1

    tamper(
        ledger_url,
        ("DELETE FROM corrigenda.event WHERE seq = %s", [before + 1]),
        ("UPDATE corrigenda.head SET seq = seq - 1", []),
    )
    assert gateway.show("m").content == "text"
    open_here.broken = False


def test_a_lost_connection_is_made_anew(gateway: Gateway, ledger_url: str) -> None:
    """OH-23: given a gateway whose connections were cut, when it is asked, then it connects again, and stores once."""
    gateway.remember("a", memory_id="m")
    rows(
        ledger_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )

    assert gateway.correct("m", "b", idempotency_key="k").outcome == "stored"
    assert gateway.correct("m", "b", idempotency_key="k").replayed
    assert len(gateway.history("m").items) == 2


def test_what_fails_in_its_transaction_leaves_nothing(
    gateway: Gateway, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-27, XC-01: given a failure after everything was written, when the append ends, no table holds any of it."""
    first = gateway.remember("a", memory_id="m")
    tables = ("event", "payload", "outbox", "revision", "directory", "head")
    queries = [f"SELECT * FROM corrigenda.{table} ORDER BY 1, 2, 3" for table in tables]  # noqa: S608 - from a list
    before = [rows(ledger_url, query) for query in queries]
    run = Flush.run

    def fail(self: Flush, writes: Sequence[Write], *meanwhile: Any) -> list[Any]:
        if all("UPDATE corrigenda.head" not in write.query for write in writes):
            return run(self, writes, *meanwhile)
        begun = self.connection.info.transaction_status == TransactionStatus.INTRANS
        begin = [] if begun else [Write(QUERIES["begin"], {})]  # so that the flush's end commits nothing
        run(self, begin + [write for write in writes if write.query != QUERIES["commit"]], *meanwhile)
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(Flush, "run", fail)
        with pytest.raises(RuntimeError):
            gateway.correct("m", "b", idempotency_key="k")
        with pytest.raises(RuntimeError):
            gateway.remember("c", memory_id="n", user="u")

    assert [rows(ledger_url, query) for query in queries] == before
    assert gateway.explain("m").head == first.revision_id
    with refused("MEMORY_NOT_FOUND"):
        gateway.show("n")
    assert not gateway.correct("m", "b", idempotency_key="k").replayed
    assert gateway.remember("c", memory_id="n", user="u").events[0].type == "name.assigned.v1"
