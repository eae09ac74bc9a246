"""The use cases: one short method each. A door translates into them and out of them, and does nothing else.

Every write is one append (`writing`), every answer is made from verified entries (`reading`, `retrieval`).
"""

from gateway.service.corrections import CorrectionActs
from gateway.service.disputing import DisputingActs
from gateway.service.evidence import EvidenceUse
from gateway.service.exporting import ExportActs
from gateway.service.importing import Importing
from gateway.service.indexing import Indexing
from gateway.service.lists import Lists
from gateway.service.memories import MemoryActs
from gateway.service.operating import Operating
from gateway.service.outbox import OutboxUse
from gateway.service.policy import PolicyUse
from gateway.service.reading import Reading
from gateway.service.recalling import Recalling
from gateway.service.replacing import ReplacingActs
from gateway.service.tracing import TraceUse
from gateway.service.withdrawing import WithdrawingActs

__all__ = ["Gateway"]


class Gateway(
    MemoryActs,
    ReplacingActs,
    WithdrawingActs,
    DisputingActs,
    CorrectionActs,
    Recalling,
    Reading,
    Lists,
    PolicyUse,
    EvidenceUse,
    ExportActs,
    Importing,
    Indexing,
    TraceUse,
    Operating,
    OutboxUse,
):
    """One ledger, as one actor uses it. A context manager; safe to share between threads."""
