"""The command line over the real system: a database, a ledger and an index, from the words to the answer."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cli_hands import Answer, corrigenda

from corrigenda import contains
from tests.roles import as_owner, as_writer


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """A project, a home of the test's own, and no embedder: it is not what is looked at here."""
    for name, value in {"HOME": str(home), "PROJECT": "ap", "EMBEDDER": "none", "ACTOR": "human:ana"}.items():
        monkeypatch.setenv(f"CORRIGENDA_{name}", value)


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, ledger_url: str) -> str:
    """A ledger with two revisions of one memory, and its database's URL."""
    monkeypatch.setenv("CORRIGENDA_DATABASE_URL", ledger_url)
    assert corrigenda("db", "init").code == 0
    assert corrigenda("memories", "remember", "user lives in Berlin", "--id", "home").code == 0
    assert corrigenda("memories", "correct", "home", "user lives in Hamburg", "--reason", "moved in May").code == 0
    return ledger_url


def answer(*words: str) -> dict[str, Any]:  # Any: JSON
    """The document that a command line answers with."""
    done = corrigenda("-o", "json", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)


def refused(done: Answer, code: str) -> bool:
    """Whether it ended with one paragraph on stderr that begins with this code."""
    return done.out == "" and done.err.startswith(f"error {code}: ") and done.err.count("\n") == 1


def last(url: str) -> int:
    """The position of the ledger's last event."""
    with psycopg.connect(as_owner(url)) as connection:
        [(seq,)] = connection.execute("SELECT max(seq) FROM corrigenda.event").fetchall()
    return seq


def test_the_path_of_one_correction(ledger: str) -> None:
    """What was remembered and corrected is explained, told, drawn, revoked and restored."""
    story = answer("explain", "home")
    first, second = (item["revision_id"] for item in answer("history", "home")["items"])
    assert (story["revision_id"], story["head"], story["root"]) == (second, second, first)
    told = corrigenda("explain", "home").out
    assert "why: moved in May" in told
    assert f"{first}: active, unverified → superseded, unverified" in told and f"{second}: new → active" in told
    edges = answer("lineage", "home")["edges"]
    assert {"from": second, "to": first, "kind": "supersedes"} in edges
    assert answer("memories", "revoke", "home", "--reason", "poison")["revision_id"] == second
    assert answer("explain", "home")["head"] is None
    assert answer("memories", "restore", "home")["revision_id"] == second
    assert answer("show", "home")["state"] == "active"


def test_the_past_by_words(ledger: str) -> None:
    """A memory as it stood, what each revision changed, two revisions, and the ledger at two positions."""
    first, second = answer("history", "home", "--patch")["items"]
    assert first["patch"] is None and list(second["patch"]) == ["content"]
    told = corrigenda("history", "home", "--patch").out
    assert "│ -user lives in Berlin" in told and "│ +user lives in Hamburg" in told
    then = answer("explain", "home", "--at", str(first["position"]))
    assert (then["content"], then["head"]) == ("user lives in Berlin", first["revision_id"])
    assert (
        f"As it stood at position {first['position']}."
        in corrigenda("explain", "home", "--at", then["recorded_at"]).out
    )
    assert answer("diff", first["revision_id"], "home")["patch"] == second["patch"]
    (item,) = answer("diff", str(first["position"]), str(second["position"]))["items"]
    assert (item["memory_id"], item["acts"], item["after"]["head"]) == ("home", ["corrected"], second["revision_id"])
    assert corrigenda("diff", "0", str(second["position"])).out.startswith("+ home  begun, corrected")
    assert refused(corrigenda("explain", "home", "--at", "99999"), "EVENT_NOT_FOUND")
    assert refused(corrigenda("diff", str(second["position"]), "0"), "VALIDATION_FAILED")


def test_a_key_makes_it_safe_to_send_again(ledger: str) -> None:
    """The same words with the same key are answered by the first receipt, and nothing is stored."""
    words = ("memories", "remember", "once", "--idempotency-key", "k1")
    first, second = answer(*words), answer(*words)
    assert (first["replayed"], second["replayed"]) == (False, True)
    assert first["revision_id"] == second["revision_id"]
    assert refused(corrigenda("memories", "remember", "other", *words[3:]), "IDEMPOTENCY_KEY_REUSED")


def test_a_dry_run_stores_nothing(ledger: str) -> None:
    """`--dry-run` says what would be, and refuses what would be refused, and leaves the ledger as it is."""
    before = last(ledger)
    assert corrigenda("memories", "retire", "home", "--dry-run").out.startswith("would be stored at")
    assert refused(corrigenda("memories", "restore", "home", "--dry-run"), "INVALID_TRANSITION")
    assert last(ledger) == before


def test_a_prefix_is_enough(ledger: str) -> None:
    """The beginning of a revision's id finds it, if no other begins so; a name is never completed."""
    first, second = (str(item["revision_id"]) for item in answer("history", "home")["items"])
    unlike = next(at for at, pair in enumerate(zip(first, second, strict=True)) if len(set(pair)) == 2)
    assert answer("show", first[: max(unlike + 1, 10)])["revision_id"] == first
    shared = first[:unlike]
    done = corrigenda("show", shared)
    # Two ids that were made around the end of a quarter of an hour share too little to abbreviate either.
    named = len(shared) >= len("rev_") + 6
    assert (done.code, first in done.err, second in done.err) == (2, named, named)
    assert refused(corrigenda("show", "hom"), "MEMORY_NOT_FOUND")
    assert "too short" in corrigenda("show", first[:9]).err


def test_bad_words_have_the_registrys_code(ledger: str) -> None:
    """Texts that cannot be stored are refused with one paragraph, and nothing of them is kept."""
    before = last(ledger)
    for text in ("", " \t", "x" * 8001, "a\udcff"):
        assert refused(corrigenda("memories", "remember", "--", text), "VALIDATION_FAILED"), text
    done = corrigenda("memories", "remember", "-", stdin=b"a\x00b")
    assert (done.code, refused(done, "VALIDATION_FAILED")) == (2, True)
    assert last(ledger) == before


@pytest.mark.parametrize("text", ["👩‍👩‍👧 family", "שלום \u202eevil", "x" * 8000, "two\nlines"])
def test_odd_texts_come_back_as_they_were(ledger: str, text: str) -> None:
    """Emoji, right-to-left and long texts are stored whole; on the way out they are inert, and still the same."""
    rev = str(answer("memories", "remember", "--", text)["revision_id"])
    done = corrigenda("show", rev, "-o", "json")
    assert json.loads(done.out)["content"] == text
    assert "\u202e" not in done.out + corrigenda("show", rev).out


def test_no_project(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a project a write is exit 2: a silent default is how things land in the wrong place."""
    monkeypatch.delenv("CORRIGENDA_PROJECT")
    done = corrigenda("memories", "remember", "x")
    assert (done.code, refused(done, "VALIDATION_FAILED")) == (2, True)


def test_an_agent_is_narrowed(ledger: str) -> None:
    """`--actor agent:…` may not revoke; the refusal names the permission."""
    done = corrigenda("memories", "revoke", "home", "--reason", "x", "--actor", "agent:bot")
    assert (done.code, refused(done, "FORBIDDEN_ACTOR")) == (4, True)
    assert "revoke" in done.err


def test_a_position_to_wait_for(ledger: str) -> None:
    """A reader answers at a position that is reached; ahead of the head it is UNAVAILABLE."""
    assert corrigenda("history", "home", "--min-position", str(last(ledger))).code == 0
    done = corrigenda("log", "--min-position", str(last(ledger) + 100))
    assert (done.code, refused(done, "UNAVAILABLE")) == (7, True)


def test_the_log(ledger: str) -> None:
    """The log lists every event once, newest first, and all of it again in reverse."""
    newest = [item["seq"] for item in answer("log")["items"]]
    assert newest == list(range(last(ledger), -1, -1))
    assert [item["seq"] for item in answer("log", "--reverse")["items"]] == newest[::-1]
    assert [item["seq"] for item in answer("log", "1..2")["items"]] == [2, 1]


def test_a_stream_of_the_log(ledger: str) -> None:
    """`log --stream` takes a memory's name, its id, a revision's, or the beginning of one; no other name."""
    history = answer("history", "home")["items"]
    stream = str(answer("log", "--type", "memory.remembered.v1")["items"][0]["stream"])
    seqs = [item["seq"] for item in answer("log", "--stream", stream)["items"]]
    assert seqs == [item["position"] for item in history][::-1]
    for word in ("home", stream[:20], history[0]["revision_id"], history[1]["revision_id"][:22]):
        assert [item["seq"] for item in answer("log", "--stream", word)["items"]] == seqs, word
    assert answer("log", "--stream", "mem_01J9ZKAAAAAAAAAAAAAAAAAAAA")["items"] == []
    done = corrigenda("log", "--stream", "hom")
    assert (done.code, refused(done, "MEMORY_NOT_FOUND")) == (3, True)
    corrigenda("memories", "remember", "another", "--id", "house")
    done = corrigenda("log", "--stream", stream[:10])
    assert done.code in (0, 2) and (done.code == 0 or "is the beginning of 2 ids" in done.err)


def test_what_links_an_event(ledger: str) -> None:
    """`show SEQ` tells by what an event is linked: to the one before in the ledger and in its stream."""
    items = {item["seq"]: item for item in answer("log")["items"]}
    seq = last(ledger)
    event = answer("show", str(seq))
    assert event["prev_b3"] == items[seq - 1]["hash"]
    assert (event["stream_seq"], event["op_index"], event["op_count"]) == (1, 0, 1)
    assert event["stream_prev_b3"] not in ("0" * 64, event["prev_b3"])
    assert len(event["seal"]) == 80 and event["payload_len"] > 0
    raw = corrigenda("show", str(seq), "--raw").raw
    assert event["leaf"] == hashlib.sha256(b"\0" + raw).hexdigest()


def test_a_broken_chain(ledger: str) -> None:
    """One byte of one event: what looks at the ledger as it lies still answers, everything else names the position."""
    with psycopg.connect(as_owner(ledger)) as owner:
        owner.execute("ALTER TABLE corrigenda.event DISABLE TRIGGER ALL")
        owner.execute(
            "UPDATE corrigenda.event SET envelope = set_byte(envelope, 20, get_byte(envelope, 20) # 1) WHERE seq = 2"
        )
    report = json.loads(corrigenda("verify", "-o", "json").out)
    assert (report["ok"], report["exit_code"]) == (False, 10)
    assert corrigenda("verify").code == 10
    for words in (["log"], ["show", "2", "--raw"], ["status"], ["db", "check"], ["db", "url"]):
        assert corrigenda(*words).code == 0, words
    for words in (
        ["history", "home"],
        ["explain", "home"],
        ["show", "home"],
        ["memories", "retire", "home"],
    ):
        done = corrigenda(*words, "-o", "json")
        fault = json.loads(done.err)
        assert (done.code, fault["code"], fault["details"]["position"]) == (10, "INTEGRITY_BROKEN", 2), words


def test_no_key(ledger: str, home: Path) -> None:
    """Without the ledger key nothing is verified: exit 15, and `doctor` names the key."""
    (home / "keys" / "ledger.key").unlink()
    done = corrigenda("history", "home")
    assert (done.code, refused(done, "LEDGER_UNVERIFIED")) == (15, True)
    checks = json.loads(corrigenda("doctor", "-o", "json").out)["items"]
    assert [check["ok"] for check in checks if check["name"] == "key"] == [False]


def test_an_empty_database(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    """A database without the schema is SCHEMA_MISMATCH naming `db init`, which can be said twice."""
    monkeypatch.setenv("CORRIGENDA_DATABASE_URL", database_url)
    for words in (["status"], ["history", "x"], ["db", "check"], ["verify"]):
        done = corrigenda(*words)
        assert (done.code, refused(done, "SCHEMA_MISMATCH")) == (7, True), words
        assert "corrigenda db init" in done.err
    assert "none" in corrigenda("db", "current").out
    first, second = answer("db", "init", "--origin", "ledger.example.org/main"), answer("db", "init")
    assert first["origin"] == second["origin"] == "ledger.example.org/main"
    done = corrigenda("db", "init", "--origin", "other.example.org")
    assert (done.code, refused(done, "INVALID_INPUT")) == (5, True)


def test_an_unreachable_database() -> None:
    """A database that does not answer is UNAVAILABLE, on every command that needs it."""
    for words in (["status"], ["history", "x"], ["verify"], ["db", "check"]):
        done = corrigenda(*words, "--database-url", "postgresql://nobody@127.0.0.1:1/none")
        assert (done.code, refused(done, "UNAVAILABLE")) == (7, True), words
        assert "nothing was stored" in done.err and "idempotency key" not in done.err, words


def test_nothing_is_made_by_looking(home: Path) -> None:
    """`verify`, `doctor` and the readers of `db` leave an empty home empty."""
    for words in (["verify"], ["doctor"], ["db", "url"], ["db", "check"], ["db", "current"]):
        assert corrigenda(*words).code != 0, words
    assert list(home.iterdir()) == []


def test_another_tenant(ledger: str) -> None:
    """A tenant that is not this ledger's is NOT_CONFIGURED."""
    done = corrigenda("history", "home", "--tenant", "acme")
    assert (done.code, refused(done, "NOT_CONFIGURED")) == (3, True)


def test_a_file_that_is_not_what_it_should_be(ledger: str, tmp_path: Path) -> None:
    """A file that is not gzip, or is cut in the middle, is exit 2, and nothing of it is stored."""
    before, whole = last(ledger), gzip.compress(b'{"pep": 1}\n' * 2000)
    for name, content in {"plain": b"{}\n", "cut": whole[: len(whole) // 2]}.items():
        (tmp_path / name).write_bytes(content)
        done = corrigenda("import", str(tmp_path / name), "--format", "peps")
        assert (done.code, refused(done, "VALIDATION_FAILED")) == (2, True), name
    assert last(ledger) == before


def test_a_database_of_ones_own_from_owner_to_service(
    monkeypatch: pytest.MonkeyPatch, database_url: str, home: Path
) -> None:
    """The owner's `db init` prints what makes the service's role; until then serving is exit 4, after it exit 0."""
    monkeypatch.setenv("CORRIGENDA_DATABASE_URL", database_url)
    assert refused(corrigenda("memories", "remember", "tea"), "SCHEMA_MISMATCH")
    done = corrigenda("db", "init")
    facts, _, statements = done.out.partition("\n\n")
    assert done.code == 0 and facts.splitlines()[-1].startswith("next: ")
    assert statements.startswith(
        "CREATE ROLE corrigenda_app LOGIN PASSWORD '…' IN ROLE corrigenda_writer;\nALTER ROLE "
    )
    assert all(line.endswith(";") for line in statements.splitlines())
    assert "next" not in corrigenda("db", "init").out
    stopped = corrigenda("memories", "remember", "tea")
    assert refused(stopped, "FORBIDDEN_ACTOR") and stopped.code == 4
    for words in (["verify"], ["status"], ["log"], ["show", "0", "--raw"], ["db", "check"], ["db", "current"]):
        assert corrigenda(*words).code == 0
    found = {check["name"]: check["ok"] for check in json.loads(corrigenda("doctor", "-o", "json").out)["items"]}
    assert found["role"] is False and found["schema"] is True
    monkeypatch.setenv("CORRIGENDA_DATABASE_URL", as_writer(database_url))
    assert corrigenda("memories", "remember", "tea").code == 0
    again = corrigenda("db", "init")
    assert again.code == 0 and "next" not in again.out
    assert corrigenda("db", "url").out.strip() == corrigenda("db", "url", "--role", "writer").out.strip()


def test_a_correction_from_its_record_to_its_revocation(ledger: str) -> None:
    """A record corrects a memory too, is found by the beginning of its id, makes a case, and ends with its reason."""
    words = (
        "--agent",
        "ap",
        "--original-value",
        "Hamburg",
        "--corrected-value",
        "Bremen",
        "--original-input",
        "where?",
    )
    done = answer("corrections", "record", *words, "--memory", "home", "--field", "city")
    correction, head = done["correction_id"], answer("show", "home")
    assert (head["content"], head["revision_id"]) == ("Bremen", done["revision_id"])
    assert answer("show", correction[:-2])["memory"] == done["superseded"][0]
    assert answer("corrections", "stats", "--by", "agent")["by_agent"] == {"ap": 1}
    case = json.loads(corrigenda("corrections", "eval-cases").out)
    assert contains("The user lives in BREMEN.", case["expected"]) and not contains("In Hamburg.", case["expected"])
    revoked = corrigenda("corrections", "revoke", correction, "--reason", "a misreading")
    assert revoked.code == 0 and "memory_untouched" in revoked.err
    assert answer("corrections", "list")["items"] == []
    assert answer("corrections", "list", "--state", "revoked")["items"][0]["correction_id"] == correction
    again = corrigenda("corrections", "revoke", correction, "--reason", "again")
    assert again.code == 5 and refused(again, "INVALID_TRANSITION")
    unknown = corrigenda("corrections", "show", "cor_01J9ZKAAAAAAAAAAAAAAAAAAAA")
    assert unknown.code == 3 and refused(unknown, "CORRECTION_NOT_FOUND")


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("trc", "TRACE_NOT_FOUND"),
        ("op", "TRACE_NOT_FOUND"),
        ("cor", "CORRECTION_NOT_FOUND"),
        ("rev", "MEMORY_NOT_FOUND"),
    ],
)
def test_an_abbreviation_of_nothing_is_not_found_as_what_it_says(ledger: str, what: str, code: str) -> None:
    """Given the beginning of no id, when it is shown, then its own kind is not found, as of a whole id."""
    for unknown in (f"{what}_01M8ZZZZZ", f"{what}_01M8ZZZZZZZZZZZZZZZZZZZZZZ"):
        done = corrigenda("show", unknown)
        assert done.code == 3 and code in done.err
    assert corrigenda("memories", "remember", "so named", "--id", f"{what}_01M8ZZZZZ").code == 0
    assert answer("show", f"{what}_01M8ZZZZZ")["content"] == "so named"


def test_what_takes_the_place_of_what(ledger: str) -> None:
    """LM-16, RC-28, RC-43: held, published, patched, merged and split by words, as the story of each tells."""
    held = answer("memories", "remember", "user lives in Bremen", "--predecessor", "home", "--hold")
    assert answer("show", "home")["content"] == "user lives in Hamburg"
    assert answer("memories", "publish", "home", "--reason", "she said so")["revision_id"] == held["revision_id"]
    assert answer("memories", "patch", "home", "--tag", "address")["outcome"] == "stored"
    assert answer("memories", "patch", "home", "--tag", "address")["outcome"] == "unchanged"
    assert "tags none → address" in corrigenda("explain", "home").out
    answer("memories", "remember", "user has a flat", "--id", "flat")
    merged = answer("memories", "supersede", "home", "flat", "--with", "user has a flat in Bremen")
    assert answer("explain", "flat")["provenance"]["supersededBy"] == merged["revision_id"]
    split = answer("memories", "supersede", "home", "--with", "user lives in Bremen", "user has a flat")
    assert answer("explain", merged["revision_id"])["superseded_by"] == split["successors"]
    assert corrigenda("lineage", "home").code == corrigenda("log", "--graph").code == 0
    assert refused(corrigenda("memories", "supersede", "flat", "--with", "x"), "INVALID_TRANSITION")


def test_a_document_is_the_same_in_any_order_and_spacing(ledger: str, tmp_path: Path) -> None:
    """RC-17, RC-39: one key and one document with its keys in another order is a replay; with another field, exit 2."""
    file, before = tmp_path / "request.json", last(ledger)
    said = [
        '{"content": "once", "tags": ["a", "b"], "kind": "task"}',
        '{\n\t"kind":"task" ,\n\t"tags":["a","b"],"content":"once"\n}\n',
        '{"content": "once", "tags": ["b", "a"], "kind": "task"}',
    ]
    words = ("memories", "remember", "--input", str(file), "--idempotency-key", "k1")
    for text, replayed in zip(said, (False, True), strict=False):
        file.write_text(text)
        assert answer(*words)["replayed"] is replayed
    stored = last(ledger)
    file.write_text(said[2])
    assert refused(corrigenda(*words), "IDEMPOTENCY_KEY_REUSED")
    for unknown in ("signal", "trust", "Content"):
        file.write_text(json.dumps({"content": "once", unknown: "x"}))
        done = corrigenda(*words)
        assert (done.code, repr(unknown) in done.err) == (2, True)
    assert last(ledger) == stored > before


def test_what_waits_is_counted_and_named_by_words(ledger: str) -> None:
    """LM-03, LM-37, RC-03: a held text is processing in receipt, list and status; a bare correction has no reason."""
    held = answer("memories", "remember", "user lives in Kiel", "--id", "home", "--predecessor", "home", "--hold")
    assert (held["state"], held["trust"]) == ("processing", "unverified")
    assert answer("status")["memories"] == {"active": 1, "superseded": 1, "processing": 1}
    assert answer("memories", "publish", held["revision_id"])["state"] == "active"
    done = answer("memories", "correct", "home", "user lives in Bonn")
    assert answer("show", str(done["position"]))["payload"]["reason"] is None


def test_a_refusal_says_when_to_come_again_only_if_that_helps(ledger: str) -> None:
    """RC-38: a conflict that stays is exit 5, with no time to try again."""
    done = corrigenda("-o", "json", "memories", "correct", "home", "x", "--if-revision", "1")
    told = json.loads(done.out or done.err)
    fault = told.get("error", told)
    assert (done.code, fault["code"], fault["retry_after_ms"]) == (5, "STALE_REVISION", None)


def test_sources_by_words(ledger: str) -> None:
    """LM-15: sources are shown beside a memory that stays unverified."""
    rev = answer("memories", "remember", "the gate is green", "--source", "guide p. 3")["revision_id"]
    shown = answer("show", rev)
    assert (shown["provenance"]["sources"], shown["trust"]) == (["guide p. 3"], "unverified")
    told = corrigenda("show", rev).out
    assert "guide p. 3" in told and "unverified" in told
