"""A finished file given its name, and never the name of something that is there."""

import os
from pathlib import Path


def place_file(written: Path, final: Path) -> None:
    """Give `written`, a file beside `final`, that name. It may keep its own, too. Raises FileExistsError, OSError."""
    try:
        os.link(written, final)  # fails, as a rename would not, if somebody was faster
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: the name is taken first, by an empty file, and then replaced.
        os.close(os.open(final, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        written.replace(final)
