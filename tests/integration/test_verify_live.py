"""A ledger that is written to while it is verified: nothing is called lost, forged or broken that is merely new."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from gateway.shapes.replies.audit import Verification
from gateway.upkeep.bare import open_bare
from tests.integration.conftest import Here

WRITES = 60


@contextmanager
def writing(here: Here, writers: int = 2) -> Iterator[list[bool]]:
    """Let some processes' worth of gateways write for as long as the block runs; the list is emptied to stop them."""
    going = [True]

    def write(number: int) -> int:
        gateway, count = here(embedder="none"), 0
        for count in range(WRITES * 10):
            if not going and count >= WRITES:
                return count
            gateway.remember(f"memory {number}-{count}", memory_id=f"m-{number}-{count % 7}-{count // 7}")
        return count

    with ThreadPoolExecutor(writers) as pool:
        written = [pool.submit(write, number) for number in range(writers)]
        try:
            yield going
        finally:
            going.clear()
            assert all(one.result() >= 1 for one in written)


@pytest.mark.parametrize("since", [False, True], ids=["whole", "from a checkpoint on"])
def test_a_ledger_that_grows_meanwhile(open_here: Here, since: bool) -> None:
    """Given writers at work, then every verification is well, and none sees less than the one before."""
    open_here(embedder="none").remember("the first")
    with open_bare(database_url=open_here.ledger_url, home=open_here.home, create=False) as bare:
        note = bare.sign_checkpoint()["note"].encode()
        sizes: list[int] = []
        with writing(open_here):
            for _ in range(12):
                report: Verification = bare.verify(since=note if since else None)
                assert report.ok, [check for check in report.checks.values() if check.status == "failed"]
                assert "everything was read" not in (report.checks["checkpoints"].why or "")
                sizes.append(report.size)
                note = bare.sign_checkpoint()["note"].encode()
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0]
