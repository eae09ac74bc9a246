"""Another process with a gateway of its own: it does one act for each line that it reads, and answers each with one.

Usage: other_process.py DATABASE_URL HOME ACTOR. A line is a JSON array: the method, its arguments, its keywords. The
answer is `{"ok": ids}` or `{"code": …}`. Before the first line it says `{"ok": "open"}`. The method `at_once` takes a
revision and several texts, corrects it by all of them at the same time, and answers `{"ok": [answer, …]}`.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import corrigenda
from gateway.service import Gateway


def main() -> None:
    """Serve until the input ends."""
    url, home, actor = sys.argv[1:]
    with corrigenda.open(url, home=home, project="atlas", actor=actor, embedder="none") as gateway:
        say({"ok": "open"})
        for line in sys.stdin:
            method, args, keywords = json.loads(line)
            say({"ok": at_once(gateway, *args)} if method == "at_once" else answer(gateway, method, args, keywords))


def answer(gateway: Gateway, method: str, args: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Do one act, and return what it is answered with."""
    try:
        done: Any = getattr(gateway, method)(*args, **keywords)
        if isinstance(done, Iterator):
            done = list(done)
        return {"ok": [getattr(done, name, None) for name in ("revision_id", "memory_id", "position", "head")]}
    except corrigenda.CorrigendaError as error:
        return {"code": error.code, "details": error.details}


def at_once(gateway: Gateway, revision: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Correct a revision by several texts at the same time."""
    with ThreadPoolExecutor(len(texts)) as threads:
        return list(threads.map(lambda text: answer(gateway, "correct", (revision, text), {}), texts))


def say(told: dict[str, Any]) -> None:
    """Answer with one line."""
    print(json.dumps(told, default=str), flush=True)


if __name__ == "__main__":
    main()
