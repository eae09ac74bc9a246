"""The read models: which projectors there are, and which tables they write. One projector owns its table.

A projector reads facts only, never a payload: erasing one changes no row, and a rebuild reads none.
"""

from projections.corrections import CorrectionProjector
from projections.directory import DirectoryProjector
from projections.edges import EdgeProjector
from projections.intervals import IntervalProjector
from projections.lineage import RevisionProjector
from projections.log import LogProjector

ALL = (
    RevisionProjector(),
    IntervalProjector(),
    EdgeProjector(),
    LogProjector(),
    CorrectionProjector(),
    DirectoryProjector(),
)

TABLES = ("revision", "revision_state", "edge", "log_entry", "correction", "directory")
