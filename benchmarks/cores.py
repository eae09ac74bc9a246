"""Keeps a client to one core, as a service with one interpreter may be told to: `taskset`, or a container's `cpuset`.

Threads that take turns on the interpreter's lock wake each other all the time. From core to core that takes longer than
the work, most of all on a virtual machine, where a core that is idle has left it.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager

WORD = "one core"


@contextmanager
def one_core() -> Generator[None]:
    """Keep what is started in the block, threads and processes, to the first core that this thread may use."""
    if not hasattr(os, "sched_setaffinity"):
        raise SystemExit("To keep a process to one core takes Linux: what is measured here cannot be elsewhere.")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
