"""A process of the linearizability tests: it withdraws revisions, or searches for them, and notes what it saw and when.

    linear_children.py '{"act": "withdraw" | "search", "where": {…}, "notes": "/…", …}'

Each note is one JSON line, written whole. Times are of the host's monotonic clock, which all its processes share.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gateway.bootstrap import open_gateway
from gateway.searching.retrieval import Confirmed, Retrieval
from gateway.service import Gateway
from projections import embedders
from tests.faults.children import COUNTING, Counting

Words = dict[str, Any]  # Any: JSON
K = 5


class Unconfirmed(msgspec.Struct):
    """What a search would answer with if it believed the index."""

    revision_id: str
    rank: int
    position: int


def main() -> None:
    """Do what the first argument says."""
    words: Words = json.loads(sys.argv[1])
    load = embedders.load
    embedders.load = lambda name: Counting() if name == COUNTING else load(name)
    file = os.open(words["notes"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(**said: Any) -> None:  # Any: JSON
        os.write(file, json.dumps(said).encode() + b"\n")

    with open_gateway(**words["where"], replay=False) as gateway:
        {"withdraw": withdraw, "search": search}[words["act"]](gateway, words, note)


def withdraw(gateway: Gateway, words: Words, note: Callable[..., None]) -> None:
    """Take each of some revisions out, by turns in one of three ways; note each when its receipt is there."""
    wait(words)
    for turn, revision in enumerate(words["revisions"]):
        for gone, position in WAYS[turn % len(WAYS)](gateway, revision, turn):
            note(revision=gone, position=position, at=time.monotonic())
        time.sleep(words["pause_s"])


def revoke(gateway: Gateway, revision: str, turn: int) -> Iterator[tuple[str, int]]:
    yield revision, gateway.revoke(revision, reason="not so").position


def correct(gateway: Gateway, revision: str, turn: int) -> Iterator[tuple[str, int]]:
    yield revision, gateway.correct(revision, f"the harbour is as it was corrected {turn}").position


def contest(gateway: Gateway, revision: str, turn: int) -> Iterator[tuple[str, int]]:
    """Let another text wait for the place, and contest the two: neither is served."""
    told = gateway.explain(revision)
    held = gateway.remember(
        f"the harbour is as a machine said {turn}",
        memory_id=told.memory_id, kind=told.kind, origin="agent", predecessor=revision, hold=True,
    )  # fmt: skip
    yield revision, gateway.contest(revision, held.revision_id or "", reason="who knows").position


WAYS = (revoke, correct, contest)


def search(gateway: Gateway, words: Words, note: Callable[..., None]) -> None:
    """Search until it is time to stop and enough was searched; note of each when it began and what it answered.

    With `believes` every other search takes the index at its word.
    """
    if words["frozen"]:
        gateway.index.open()
        gateway.index.frozen = True
    confirmed = Retrieval._confirm
    wait(words)
    done, stop = 0, Path(words["stop"])
    while done < words["at_least"] or not stop.exists():
        believes = words["believes"] and done % 2 == 1
        Retrieval._confirm = unconfirmed if believes else confirmed
        query = f"{words['query']} {7 * done % words['days']}"
        began = time.monotonic()
        found = gateway.search(query, k=K)
        hits = [hit.revision_id for hit in found.hits]
        note(began=began, position=found.position, hits=hits, confirms=not believes)
        done += 1


def unconfirmed(self: Retrieval, near: Any, *_: object, **__: object) -> Iterator[Any]:  # Any: retrieval's own
    """Take every neighbour for a hit."""
    for item, *_rest in near:
        made: Any = partial(Unconfirmed, item.revision)  # Any: another hit than retrieval's own
        yield Confirmed(item, made)


def wait(words: Words) -> None:
    """Say that this process is ready, and wait for the gate."""
    print("ready", flush=True)
    gate = Path(words["gate"])
    while not gate.exists():
        time.sleep(0.002)


if __name__ == "__main__":
    main()
