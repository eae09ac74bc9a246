"""Exports: the history of memories in a bundle that an outsider checks without us.

A bundle is written aside, then the export is recorded as an event, and only then it appears under the name that was asked
for: nothing is handed out of which the ledger does not know.
"""

import secrets
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from gateway import checkpoints, signing
from gateway.names import Names
from gateway.replies import Export, Receipt
from gateway.states import States
from ledger import notes
from ledger.bundle.writing import Contents, Exported, fill, is_packed, place
from ledger.chain import broken
from ledger.clock import Clock, stamp
from ledger.digest import digest_of
from ledger.errors import refuse
from ledger.governance import HandedOut, LedgerOpened, RecordExport
from ledger.ids import MEMORY, kind_of
from ledger.keys import KeyFiles
from ledger.memories import LineageState
from ledger.notes import Checkpoint
from ledger.rendering import render
from ledger.verified import Recorded, VerifiedLedger
