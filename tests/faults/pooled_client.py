"""A process that writes and reads through a pooler, from several threads on one gateway; for the pooler's tests.

    pooled_client.py DATABASE_URL HOME NAME THREADS ACTS GATE

It says `{"ready": true}`, waits until the file GATE is there, and each thread then does ACTS rounds: it remembers a
text of its own, asks for it again at its position, and tries to correct the memory `shared`. Every write carries a key
and is repeated with it while its outcome is unknown or another was first. At the end it says what was acknowledged.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import corrigenda

REPEATS_MAX = 200
WAIT_S = 0.05


def main() -> None:
    """Write and read until done."""
    url, home, name, threads, acts, gate = sys.argv[1:]
    with corrigenda.open(url, home=home, project="pool", actor=f"human:{name}", embedder="none") as gateway:
        say({"ready": True})
        while not Path(gate).exists():
            time.sleep(0.005)
        with ThreadPoolExecutor(int(threads)) as pool:
            done = [pool.submit(rounds, gateway, f"{name}.{thread}", int(acts)) for thread in range(int(threads))]
            say({"texts": [text for one in done for text in one.result()]})


def rounds(gateway: Any, name: str, acts: int) -> list[str]:  # Any: a gateway, whose type is not public
    """Do one thread's acts; return the texts that were acknowledged."""
    texts: list[str] = []
    for act in range(acts):
        text = f"{name}.{act}"
        stored = insist(lambda key, text=text: gateway.remember(text, memory_id=text, idempotency_key=key), text)
        texts.append(text)
        shown = insist(
            lambda _, text=text, at=stored.position: gateway.show(text, min_position=str(at)), "a read needs no key"
        )
        assert (shown.content, shown.version) == (text, 1)
        insist(lambda key, text=text: gateway.correct("shared", text, idempotency_key=key), f"shared by {text}")
        texts.append(f"shared by {text}")
    return texts


def insist(act: Any, key: str) -> Any:  # Any: a method of the gateway, and its answer
    """Do something under a key, again and again while trying again may help; return its answer."""
    for _ in range(REPEATS_MAX):
        try:
            return act(key)
        except corrigenda.CorrigendaError as error:
            if not error.retriable and error.code not in ("CONCURRENT_MODIFICATION", "MEMORY_ALREADY_SUPERSEDED"):
                raise
            time.sleep(WAIT_S)
    raise AssertionError(f"{REPEATS_MAX} repeats were not enough")


def say(answer: dict[str, Any]) -> None:
    """Answer with one line."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
