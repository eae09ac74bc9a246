"""Which streams a word means: an id, the beginning of one, or a memory's name. By the tables as they lie, unchecked.

For what has to answer where the chain is broken; elsewhere `names` says it from verified events.
"""

import re
from collections.abc import Callable

from gateway.scope.names import no_project, not_found
from ledger.codec import read_entry
from ledger.digest import LedgerKeys
from ledger.governance import NameAssigned
from ledger.ids import REVISION, is_callers_id, is_ours, is_prefix_of_ours, kind_of
from ledger.store import QUERIES, Store
from projections.lineage import QUERIES as LINEAGES

_NAME_STREAM = re.compile("name_[0-9a-f]{64}")


def find_streams(store: Store, keys: Callable[[], LedgerKeys], project: str | None, word: str) -> tuple[str, ...]:
    """Return the streams that may be meant: several only for the beginning of an id. `keys` is asked for a name.

    A revision means its memory's stream. Errors: MEMORY_NOT_FOUND (no such name), VALIDATION_FAILED (a name without a
    project), LEDGER_UNVERIFIED (a name, and no key to look it up with).
    """
    if _NAME_STREAM.fullmatch(word):
        return (word,)
    if is_ours(word) and kind_of(word) != REVISION:
        return (word,)
    found = _begun(store, word) if is_prefix_of_ours(word) else ()
    if found or is_ours(word):
        return found or (word,)
    if project is None:
        raise no_project()
    return (_named(store, keys(), project, word),)


def _begun(store: Store, prefix: str) -> tuple[str, ...]:
    """Return the streams whose id, or that of a revision of theirs, begins so."""
    if kind_of(prefix) == REVISION:
        rows = store.query(LINEAGES["find_lineages"], {"gen": store.head().gen, "prefix": prefix})
    else:
        rows = store.query(QUERIES["find_streams"], {"prefix": prefix})
    return tuple(str(stream) for (stream,) in rows)


def _named(store: Store, keys: LedgerKeys, project: str, name: str) -> str:
    root = f"led_{store.ledger}"
    if is_callers_id(name) and project.isprintable():
        known = _assigned(store, keys.name("project", root, project))
        memory = None if known is None else _assigned(store, keys.name("memory", known, name))
        if memory is not None:
            return memory
    raise not_found()


def _assigned(store: Store, stream: str) -> str | None:
    """Return the id that a name's stream gives it."""
    for stored in store.stream(stream):
        facts = read_entry(stored.envelope, stored.seal, position=stored.seq).envelope.facts
        if isinstance(facts, NameAssigned):
            return facts.id
    return None
