"""Shared hands: a verification that is made by one reader, in two ways, and by two, and has to say the same."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from ledger import verify as verification
from ledger.store import Store
from ledger.verify import Report, helper, sharing

PAGE = 2


def verify(store: Store, *given: Any, **also: Any) -> Report:  # Any: what `ledger.verify.verify` is given
    """Return the report of one reader who looks closely at each entry; others must come to the same.

    They are one who looks at three entries at a glance, and two, with pages of two.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledger.verify.course.glance", Mock(return_value=None))
        closely = verification.verify(store, *given, processes=1, **also)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledger.verify.course.AT_ONCE", 3)
        assert verification.verify(store, *given, processes=1, **also) == closely
        short_pages(patch)
        patch.setattr(sharing, "helper", in_a_thread)
        assert verification.verify(store, *given, processes=2, **also) == closely
    return closely


def short_pages(patch: pytest.MonkeyPatch, size: int = PAGE) -> None:
    """Let a ledger of any length be shared, in pages of so many events."""
    patch.setattr(sharing, "SHARED_MIN", 1)
    patch.setattr(sharing, "FIRST_SIZE", size)
    patch.setattr(sharing, "next_size", Mock(return_value=size))
    patch.setattr("ledger.verify.verification.FIRST_SIZE", size)


@contextmanager
def in_a_thread() -> Generator[sharing.Helper]:
    """Give a helper that is a thread, with the same pipes: a process costs a quarter of a second."""
    told, telling = os.pipe()
    heard, saying = os.pipe()
    with (
        os.fdopen(told, "rb") as told_file,
        os.fdopen(telling, "wb") as telling_file,
        os.fdopen(heard, "rb") as heard_file,
        os.fdopen(saying, "wb") as saying_file,
    ):
        thread = threading.Thread(target=helper.serve, args=(told_file, saying_file))
        thread.start()

        def ended() -> str:
            thread.join()
            saying_file.close()
            return "it was a thread"

        aid = sharing.Helper(telling_file, heard_file, ended)
        try:
            yield aid
        finally:
            aid.end()
