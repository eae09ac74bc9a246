"""Names of a scope that differ only in spelling: a writer and a reader who spell one differently miss each other.

Names are compared exactly, always; this only warns. A name is found by its keyed digest, so what can be looked up are
the likely other spellings of it: in another case, with other separators, with white space around it.
"""

import re
import unicodedata
from collections.abc import Iterator

from gateway.scope.names import Names
from gateway.shapes.requests import ScopeRequest

_SEPARATORS = re.compile(r"[\s_.-]+")
_CHECKED_MAX = 10_000
_KINDS = ("agent", "user", "task_family")  # sessions are mostly made by programs, and many


class Spellings:
    """What is known of the names of one ledger: which other spellings of them are in use."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._checked: dict[tuple[str, str, str], bool] = {}

    def warnings(self, root: str, project: str | None, scope: ScopeRequest) -> tuple[str, ...]:
        """Return a warning for each part of a scope of which another spelling is a name, too.

        It names the part and never the text; what was looked up once in this process is not looked up again.
        """
        if project is None:
            return ()
        found = self._names.find("project", root, project)
        given = [("project", root, project)]
        given += [(kind, found or "", name) for kind in _KINDS if (name := getattr(scope, kind)) is not None]
        return tuple(
            f"scope_spelling: another {kind} is called the same in another spelling; they share nothing"
            for kind, parent, name in given
            if parent and self._is_spelled_otherwise(kind, parent, name)
        )

    def _is_spelled_otherwise(self, kind: str, parent: str, name: str) -> bool:
        key = (kind, parent, name)
        if key not in self._checked:
            if len(self._checked) >= _CHECKED_MAX:
                self._checked.clear()
            self._checked[key] = any(self._names.find(kind, parent, other) for other in spellings(name))
        return self._checked[key]


def spellings(name: str) -> Iterator[str]:
    """Yield other likely spellings of a name, each once."""
    plain = unicodedata.normalize("NFKC", name).strip()
    joined = [name, name.strip(), plain, *(_SEPARATORS.sub(separator, plain) for separator in ("-", "_", " ", ""))]
    cased = [form for text in joined for form in (text, text.lower(), text.upper(), text.title(), text.capitalize())]
    yield from dict.fromkeys(form for form in cased if form and form != name)
