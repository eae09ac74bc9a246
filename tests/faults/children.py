"""A process that uses a ledger and may kill itself at a chosen moment; for the fault tests. Answers in JSON lines.

    children.py '{"act": "remember", "where": {…}, "texts": […], "moment": "before the embedding", "nth": 1}'

`where` holds the arguments of `open_gateway`; the moments are those of `MOMENTS`. The kill is a real one: nothing
that would run at an orderly end runs. `Counting` is the embedder of this process and of the tests themselves.
"""

import dataclasses
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import migrations
from gateway.bootstrap import open_bare, open_gateway
from gateway.deciding.late_checks import LateChecks
from gateway.shapes.replies.documents import document
from gateway.transfer import taking
from gateway.writing.page import Page
from ledger import anchor_file, keys, opening, storing
from ledger.anchor import Anchor
from ledger.anchor_growth import Growth
from ledger.storing import Storing
from projections import embedders
from projections.embedders import Embedder, Vectors
from projections.index import snapshot
from projections.vectors import StoredVectors
from tests.house import WordsEmbedder

Words = dict[str, Any]

COUNTING, OTHER = "counting", "other"


class Counting(WordsEmbedder):
    """The tests' embedder without a model, which remembers the texts that it was given."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text."""
        self.embedded += texts
        return super().embed(texts)


class Other(Counting):
    """Another embedder likewise: its vectors are not to be compared with those of the first."""

    signature = "provider=test;model=other"


BY_NAME: dict[str, type[Counting]] = {COUNTING: Counting, OTHER: Other}


@dataclasses.dataclass
class Watched:
    """Any embedder, with an `embed` of its own that a moment can be put on."""

    inner: Embedder

    @property
    def signature(self) -> str:
        """Return the inner embedder's."""
        return self.inner.signature

    @property
    def dimension(self) -> int:
        """Return the inner embedder's."""
        return self.inner.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what the inner embedder returns."""
        return self.inner.embed(texts)


# Whose attribute is called at that moment, and whether the call still happens (then its caller is never told).
MOMENTS: dict[str, tuple[object, str, bool]] = {
    "while deciding": (Page, "begin", True),
    "before the append": (storing, "group_writes", False),
    "before the last part": (storing, "group_writes", True),
    "before the commit": (Storing, "write", True),
    "after the commit": (Storing, "take", False),
    "between pages": (Storing, "take", True),
    "before the embedding": (Watched, "embed", False),
    "after the embedding": (StoredVectors, "_store", True),
    "before the late check": (LateChecks, "_invalidate", False),
    "after the late check": (LateChecks, "_invalidate", True),
    "before the rename": (snapshot, "publish_directory", False),
    "after the rename": (snapshot, "publish_directory", True),
    "before the anchor is in its place": (anchor_file, "_put_in_place", False),
    "after the anchor is in its place": (anchor_file, "_put_in_place", True),
    "before the anchor": (Anchor, "extend", False),
    "inside the anchor's transaction": (Growth, "add_to", True),
    "before the anchor's statement": (Growth, "_written", False),
    "after the anchor": (Anchor, "extend", True),
    "before the ledger key": (keys, "_write_once", False),
    "before a key file is in place": (os, "link", False),
    "after the ledger key": (keys, "make_ledger_key", True),
    "after both keys": (opening, "opening_entry", False),
    "before event 0 is committed": (opening, "_write_first", True),
    "after event 0 is committed": (opening, "_first_use", True),
}


def main() -> None:
    """Do the one act that the first argument describes."""
    words: Words = json.loads(sys.argv[1])
    load = embedders.load
    embedders.load = lambda name: (
        Watched(made) if (made := BY_NAME[name]() if name in BY_NAME else load(name)) else None
    )
    if "moment" in words:
        strike(words["moment"], words.get("nth", 1))
    if "linger_s" in words:
        linger(words["linger_s"])
    ACTS[words["act"]](words)
    say({"done": True})


def strike(moment: str, nth: int) -> None:
    """Arrange that this process is killed when the moment comes for the `nth` time."""
    owner, name, happens = MOMENTS[moment]
    real = getattr(owner, name)
    calls = 0

    def struck(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < nth:
            return real(*given, **named)
        if happens:
            real(*given, **named)
        say({"struck": moment})
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, struck)


def linger(seconds: float) -> None:
    """Make first use, and the making of the schema, take so long that processes which begin together meet in it."""
    entry, step = opening.opening_entry, migrations.run_sql_beside

    def slow_entry(*given: Any) -> Any:
        time.sleep(seconds)
        return entry(*given)

    def slow_step(module_file: str) -> None:
        time.sleep(seconds)
        step(module_file)

    opening.opening_entry, migrations.run_sql_beside = slow_entry, slow_step


def remember(words: Words) -> None:
    """Remember some texts, and say each receipt."""
    with open_gateway(**words["where"], replay=False) as gateway:
        for text in words["texts"]:
            say(document(gateway.remember(text, idempotency_key=words.get("key"))))


def correct(words: Words) -> None:
    """Correct a memory, and say the receipt."""
    with open_gateway(**words["where"], replay=False) as gateway:
        say(document(gateway.correct(words["memory"], words["texts"][0], idempotency_key=words.get("key"))))


def bustle(words: Words) -> None:
    """Take turns in asking and, with `writes`, remembering, `turns` times; say how many events were stored."""
    with open_gateway(**words["where"], replay=False) as gateway:
        wait(words)
        stored = 0
        for turn in range(words["turns"]):
            if words["writes"]:
                done = gateway.remember(f"{os.getpid()} {turn}", memory_id=f"m-{os.getpid()}-{turn % 3}-{turn // 3}")
                assert done.warnings == (), done.warnings
                assert gateway.explain(done.revision_id or "").content == f"{os.getpid()} {turn}"
                stored += len(done.events)
            gateway.history("shared")
            gateway.search("shared")
        say({"stored": stored})


def recover(words: Words) -> None:
    """Recover, and say what it took."""
    with open_gateway(**words["where"], replay=False) as gateway:
        wait(words)
        say(document(gateway.recover()))


def import_peps(words: Words) -> None:
    """Import a file, and say the report."""
    with open_gateway(**words["where"], replay=False) as gateway:
        wait(words)
        say(document(gateway.import_peps(words["path"])))


def take_over(words: Words) -> None:
    """Take over a file of lines or, where its issuer's key is given, a bundle, some lines a page; say the report."""
    taking.LINES_PER_PAGE = words["lines_per_page"]
    with open_gateway(**words["where"], replay=False) as gateway:
        path, key = words["path"], words.get("key")
        say(document(gateway.import_lines(path) if key is None else gateway.import_bundle(path, key)))


def export(words: Words) -> None:
    """Export the ledger, and say what was; with `struck`, be killed as soon as some of it is written or read."""

    def killed(done: int, _: int) -> None:
        if done:
            say({"struck": "while exporting"})
            os.kill(os.getpid(), signal.SIGKILL)

    with open_gateway(**words["where"], replay=False) as gateway:
        progress = killed if words.get("struck") else None
        say(document(gateway.export_ledger(
            words["path"], form=words["form"], idempotency_key=words.get("key"), progress=progress
        )))  # fmt: skip


def visit(words: Words) -> None:
    """Open a ledger as often as `threads` says, all at once, and say its status each time."""
    where = words["where"]

    def once(_: int) -> None:
        with open_gateway(**where), open_bare(**bare(where), create=False) as beside:
            say(document(beside.status())["ledger"])

    wait(words)
    times = words.get("threads", 1)
    with ThreadPoolExecutor(times) as pool:
        list(pool.map(once, range(times)))


def init(words: Words) -> None:
    """Make schema, keys and ledger, and say what there is."""
    importlib.import_module("alembic.command")  # now, so that it costs no time between the gate and the lock
    wait(words)
    with open_bare(**bare(words["where"])) as opened:
        say(opened.init())


def bare(where: Words) -> Words:
    """Return the arguments of `open_bare` among those of `open_gateway`."""
    return {name: where.get(name) for name in ("database_url", "home", "tenant", "project")}


def modules(words: Words) -> None:
    """Open a ledger, and say which modules that has loaded."""
    with open_gateway(**words["where"]):
        say({"modules": sorted(sys.modules)})


def wait(words: Words) -> None:
    """Say that this process is ready, and wait until a file is there, if one was named."""
    if "gate" in words:
        say({"ready": True})
        gate = Path(words["gate"])
        while not gate.exists():
            time.sleep(0.005)


def say(answer: object) -> None:
    """Write one JSON line, whole, past any buffer that a kill would lose."""
    os.write(1, json.dumps(answer).encode() + b"\n")


def reembed(words: Words) -> None:
    """Build the index anew with the embedder that is configured, and say what that took."""
    with open_gateway(**words["where"], replay=False) as gateway:
        wait(words)
        say(document(gateway.reembed()))


ACTS: dict[str, Callable[[Words], None]] = {
    "remember": remember,
    "correct": correct,
    "bustle": bustle,
    "recover": recover,
    "reembed": reembed,
    "import": import_peps,
    "take over": take_over,
    "export": export,
    "visit": visit,
    "init": init,
    "modules": modules,
}

if __name__ == "__main__":
    main()
