"""Who sees what: visibility, segment by segment.

A record names the segments of its scope by ids of ours; a reader sees it if the segments that its visibility names
are the reader's own. A reader without any ids sees only what the project or the whole tenant may see.
"""

from ledger.message import ScopeIds

SEGMENTS = ("agent", "user", "session", "task_family")
VISIBILITIES = ("global", "tenant", "project", "agent", "user", "session")
KINDS = ("fact", "preference", "learning", "decision", "procedure", "task", "other")
ORIGINS = ("human", "agent", "llm_extracted", "import")
TRUST_TIERS = ("unverified", "verified")

_EVERYWHERE = ("global", "tenant")


def default_visibility(kind: str) -> str:
    """Return the visibility of a kind for which none was asked."""
    return "user" if kind == "learning" else "project"


def segments(visibility: str, scope: ScopeIds) -> tuple[str, ...]:
    """Return the ids that a reader must share to see a record of that visibility and scope."""
    if visibility in _EVERYWHERE:
        return ()
    if visibility == "project":
        return (scope.project,)
    own: str | None = getattr(scope, visibility)
    return (scope.project, own or "")


def sees(reader: ScopeIds, *, visibility: str, scope: ScopeIds) -> bool:
    """Report whether a reader of that scope may see a record. A segment that is missing never matches."""
    if visibility not in VISIBILITIES:
        return False
    wanted = segments(visibility, scope)
    return "" not in wanted and wanted == segments(visibility, reader)


def namespaces(reader: ScopeIds) -> tuple[tuple[str, ...], ...]:
    """Return the at most five namespaces that a reader looks into: what `namespace` gives for its records."""
    shown = ["tenant", "project", *(name for name in ("agent", "user", "session") if getattr(reader, name))]
    return tuple(namespace(name, reader) for name in shown)


def namespace(visibility: str, scope: ScopeIds) -> tuple[str, ...]:
    """Return the namespace in which a record is indexed: its visibility and the segments that it names."""
    level = "tenant" if visibility in _EVERYWHERE else visibility
    return (level, *segments(visibility, scope))
