"""Another process with a gateway of its own: it does one act for each line that it reads, and answers each with one.

Usage: other_process.py DATABASE_URL HOME ACTOR. A line is a JSON array: the method, its arguments, its keywords. The
answer is `{"ok": ids}` or `{"code": …}`. Before the first line it says `{"ok": "open"}`.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import corrigenda


def main() -> None:
    """Serve until the input ends."""
    url, home, actor = sys.argv[1:]
    with corrigenda.open(url, home=home, project="atlas", actor=actor, embedder="none") as gateway:
        say({"ok": "open"})
        for line in sys.stdin:
            method, args, keywords = json.loads(line)
            try:
                answer: Any = getattr(gateway, method)(*args, **keywords)
                if isinstance(answer, Iterator):
                    answer = list(answer)
                say({"ok": [getattr(answer, name, None) for name in ("revision_id", "memory_id", "position", "head")]})
            except corrigenda.CorrigendaError as error:
                say({"code": error.code, "details": error.details})


def say(answer: dict[str, Any]) -> None:
    """Answer with one line."""
    print(json.dumps(answer, default=str), flush=True)


main()
