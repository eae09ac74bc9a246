"""The front door: everything that a program needs, under one name that nobody else has.

    with corrigenda.open(project="handbook") as ledger:
        done = ledger.remember("The office is in Berlin.")
        ledger.correct(done.revision_id, "The office is in Hamburg.", reason="moved in May")
        print([hit.content for hit in ledger.search("Where is the office?").hits])

What can be asked of a ledger are the methods of `corrigenda.Gateway`; what they answer, and the errors that they raise,
are the other classes here.

The five packages behind it bear everyday names (`ledger`, `cli`, …), so a folder or a distribution with
one of those names can come before them on the import path. This module looks first, and refuses to open onto
a stranger's rooms (docs/adr/0001-top-level-packages.md). It must stay quick to import: the database, the index
and the embedder are loaded by `open`, not before.
"""

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING


def _refuse_foreign_packages() -> None:
    """Raise an ImportError unless the import system finds each of the five packages beside this file."""
    home = os.path.dirname(os.path.realpath(__file__))
    for name in ("ledger", "projections", "gateway", "cli", "migrations"):
        spec = importlib.util.find_spec(name)  # finds without importing: a stranger's code must not run
        found = spec.origin if spec else None
        if found and os.path.realpath(found) == os.path.join(home, name, "__init__.py"):
            continue
        folder = os.path.dirname(found) if found else "none"
        raise ImportError(
            f"corrigenda expected its package {name!r} in {home}, but the one that Python finds is {folder}. "
            "Install corrigenda in a virtual environment of its own, and keep other folders and "
            f"distributions named {name!r} off the import path: `python -c` and `python -m` look in the "
            "current folder first, the command `corrigenda` and `python -P` do not.",
            name=name,
            path=found,
        )


_refuse_foreign_packages()

# After the check on purpose: before it, these names could be anybody's.
from gateway.reading.evals import contains  # noqa: E402
from gateway.shapes.replies.audit import BundleVerification, Check, Export, Verification  # noqa: E402
from gateway.shapes.replies.base import Reply  # noqa: E402
from gateway.shapes.replies.corrections import (  # noqa: E402
    Correction,
    CorrectionHistory,
    CorrectionHit,
    CorrectionList,
    CorrectionSearch,
    CorrectionStats,
    EvalCase,
    ExplainedCorrection,
    PatchedCorrection,
    Rendered,
)
from gateway.shapes.replies.lineages import Lineage, LineageEdge, LineageNode  # noqa: E402
from gateway.shapes.replies.log import EventDetail, LogItem, Trace  # noqa: E402
from gateway.shapes.replies.memories import (  # noqa: E402
    Evidence,
    ListedRevision,
    MemoryList,
    Policy,
    PolicySetting,
    Revision,
    RevisionAct,
)
from gateway.shapes.replies.models import (  # noqa: E402
    IndexCheck,
    IndexDifference,
    IndexPartition,
    IndexRebuild,
    IndexStatus,
    ModelDifference,
    ModelsCheck,
    ModelsStatus,
    Rebuild,
    Reembedding,
)
from gateway.shapes.replies.past import (  # noqa: E402
    AuditEntry,
    Change,
    CorrectionDiff,
    CorrectionThen,
    Explanation,
    History,
    MemoryDiff,
    MemoryThen,
    MetadataChange,
    PatchedRevision,
    RevisionDiff,
    RevisionRef,
)
from gateway.shapes.replies.searches import Excluded, Hit, Search  # noqa: E402
from gateway.shapes.replies.traces import (  # noqa: E402
    SearchTrace,
    TracedCorrection,
    TracedHit,
    TraceList,
    TraceSummary,
    TraceVerdict,
)
from gateway.shapes.replies.upkeep import (  # noqa: E402
    ImportItem,
    ImportReport,
    Outbox,
    OutboxItem,
    OutboxRetry,
    Recovery,
    Status,
    Transfer,
)
from gateway.shapes.replies.writes import (  # noqa: E402
    CorrectionReceipt,
    EventRef,
    Impact,
    Pruned,
    Receipt,
    RevisionReceipt,
)
from ledger.clock import Clock  # noqa: E402
from ledger.errors import (  # noqa: E402
    ConflictError,
    CorrigendaError,
    ForbiddenError,
    IntegrityError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)

if TYPE_CHECKING:
    from gateway.service import Gateway

    __version__: str

__all__ = [
    "AuditEntry",
    "BundleVerification",
    "Change",
    "Check",
    "ConflictError",
    "Correction",
    "CorrectionDiff",
    "CorrectionHistory",
    "CorrectionHit",
    "CorrectionList",
    "CorrectionReceipt",
    "CorrectionSearch",
    "CorrectionStats",
    "CorrectionThen",
    "CorrigendaError",
    "EvalCase",
    "EventDetail",
    "EventRef",
    "Evidence",
    "Excluded",
    "ExplainedCorrection",
    "Explanation",
    "Export",
    "ForbiddenError",
    "Gateway",
    "History",
    "Hit",
    "Impact",
    "ImportItem",
    "ImportReport",
    "IndexCheck",
    "IndexDifference",
    "IndexPartition",
    "IndexRebuild",
    "IndexStatus",
    "IntegrityError",
    "InvalidInputError",
    "Lineage",
    "LineageEdge",
    "LineageNode",
    "ListedRevision",
    "LogItem",
    "MemoryDiff",
    "MemoryList",
    "MemoryThen",
    "MetadataChange",
    "ModelDifference",
    "ModelsCheck",
    "ModelsStatus",
    "NotFoundError",
    "Outbox",
    "OutboxItem",
    "OutboxRetry",
    "PatchedCorrection",
    "PatchedRevision",
    "Policy",
    "PolicySetting",
    "Pruned",
    "Rebuild",
    "Receipt",
    "Recovery",
    "Reembedding",
    "Rendered",
    "Reply",
    "Revision",
    "RevisionAct",
    "RevisionDiff",
    "RevisionReceipt",
    "RevisionRef",
    "Search",
    "SearchTrace",
    "Status",
    "Trace",
    "TraceList",
    "TraceSummary",
    "TraceVerdict",
    "TracedCorrection",
    "TracedHit",
    "Transfer",
    "UnavailableError",
    "Verification",
    "__version__",
    "contains",
    "open",
    "verify_bundle",
]


def open(
    database_url: str | None = None,
    *,
    home: str | Path | None = None,
    tenant: str | None = None,
    project: str | None = None,
    actor: str | None = None,
    permissions: Iterable[str] | None = None,
    embedder: str | None = None,
    clock: Clock | None = None,
) -> "Gateway":
    """Return an open gateway to one ledger: a context manager, safe to share between threads.

    Without `database_url` the environment's is used, and without that the embedded server under `home`, which
    is started and prepared as needed. `project` is where acts belong that name none. `actor` is who acts, as
    `kind:name`; `permissions` is what it may do, instead of its kind's default. `embedder` names what makes
    vectors of texts; `clock` is a callable that returns an aware datetime. What is None comes from the
    environment, else is the default.

    Raises UnavailableError where the database does not answer or has another schema, IntegrityError where the
    ledger cannot be trusted, and InvalidInputError for a setting that cannot be used.
    """
    from gateway.bootstrap import open_gateway  # here, because it loads the database driver and the index

    return open_gateway(
        database_url=database_url,
        home=home,
        tenant=tenant,
        project=project,
        actor=actor,
        permissions=permissions,
        embedder=embedder,
        clock=clock,
    )


def verify_bundle(path: str | Path, key: str, *, origin: str | None = None) -> BundleVerification:
    """Check an audit bundle with its issuer's verifier key; neither a database nor a home is needed.

    What is wrong with the bundle is in the answer (`ok`, `verdict`, `exit_code`). Raises InvalidInputError where the
    key is none, or nothing can be read at `path`.
    """
    from gateway.audit.bundles import verify_bundle as check

    return check(path, key, origin=origin)


def __getattr__(name: str) -> object:
    """Load what is dear to import, or seldom asked for, when it is first asked for."""
    if name == "Gateway":
        from gateway.service import Gateway

        return Gateway
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("corrigenda")
        except PackageNotFoundError:  # run from a source tree that is not installed
            return "unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
