"""What each act decides: names become ids, references become revisions, and the aggregate says yes or no.

It reads and decides on an append, and never stores anything; the modules are named as those of `ledger.memories`.
"""

from gateway.deciding.beginning import Beginning
from gateway.deciding.corrections import Correcting
from gateway.deciding.disputing import Disputing
from gateway.deciding.governing import Governing
from gateway.deciding.linking import Linking
from gateway.deciding.mending import Mending
from gateway.deciding.proving import Proving
from gateway.deciding.replacing import Replacing
from gateway.deciding.withdrawing import Withdrawing

__all__ = ["Decisions"]


class Decisions(Correcting, Beginning, Replacing, Withdrawing, Disputing, Mending, Linking, Governing, Proving):
    """Decides the acts of one actor in one project."""
