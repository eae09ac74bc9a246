"""A second process that checks pages of the same ledger: what it is, what it is told, and what it answers.

It is told through a pipe which ledger to read and which pages to look at, and answers with stretches. It decides
nothing, and writes nothing anywhere. It ends when it is not told anything more, so when whoever began it is gone.
"""

import gc
import os
import signal
import struct
import sys
import threading
from queue import SimpleQueue
from typing import IO, NamedTuple, TypeVar

import msgspec
import psycopg
from msgspec import Struct

from ledger.digest import SealKey
from ledger.errors import CorrigendaError
from ledger.store import Database, Store
from ledger.verify.entries import Ledger
from ledger.verify.pages import Page, read, short_turns
from ledger.verify.stretch import Stretch, stretch_of

_SIZE = struct.Struct("!I")
_StructT = TypeVar("_StructT", bound=Struct)


class Job(Struct, array_like=True, frozen=True):
    """Where the ledger lies, and with which key its entries should be sealed, if that is known."""

    url: str
    pooled: bool
    ledger: str
    origin: str
    seal_key: bytes | None


class Span(Struct, array_like=True, frozen=True):
    """The positions of a page, the first and the last."""

    first: int
    last: int


class Answer(Struct, array_like=True, frozen=True):
    """What became of a span: its stretch, or None; `trouble` is why there will be no more answers.

    The first answer of all is to the job, and holds nothing: the helper is ready.
    """

    stretch: Stretch | None = None
    trouble: str | None = None


class _Read(NamedTuple):
    span: Span
    page: Page


def send(pipe: IO[bytes], message: Struct) -> None:
    """Write a message to a pipe."""
    raw = msgspec.msgpack.encode(message)
    pipe.write(_SIZE.pack(len(raw)) + raw)
    pipe.flush()


def receive(pipe: IO[bytes], kind: type[_StructT]) -> _StructT | None:
    """Return the next message of a pipe, or None if it has ended, in the midst of one too."""
    size = pipe.read(_SIZE.size)
    if len(size) < _SIZE.size:
        return None
    raw = pipe.read(*_SIZE.unpack(size))
    return msgspec.msgpack.decode(raw, type=kind) if len(raw) == _SIZE.unpack(size)[0] else None


def serve(told: IO[bytes], said: IO[bytes]) -> None:
    """Check what one reading tells, and answer, until it tells nothing more or the database does not answer."""
    if (job := receive(told, Job)) is None:
        return
    database = Database(job.url, pooled=job.pooled)
    ledger = Ledger(job.ledger, job.origin, None if job.seal_key is None else SealKey(job.seal_key))
    pages: SimpleQueue[_Read | str | None] = SimpleQueue()
    reader = threading.Thread(
        target=_read_ahead, args=(told, Store(database, job.ledger), pages), name="verify", daemon=True
    )
    send(said, Answer())
    reader.start()
    while (found := pages.get()) is not None:
        if isinstance(found, str):
            send(said, Answer(trouble=found))
            return
        send(said, Answer(stretch_of(found.page, found.span.first, found.span.last, ledger)))


def _read_ahead(told: IO[bytes], store: Store, pages: "SimpleQueue[_Read | str | None]") -> None:
    """Read each page that is told of while those before it are checked."""
    try:
        store.expect_pages()
        while (span := receive(told, Span)) is not None:
            pages.put(_Read(span, read(store, span.first - 1, span.last - span.first + 1)))
    except (CorrigendaError, psycopg.Error) as error:
        pages.put(" ".join(str(error).split())[:300])
    finally:
        try:
            store.database.close()
        finally:
            pages.put(None)


def main() -> None:
    """Serve whoever began this process, through its standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for whoever reads the ledger, and ends the input
    gc.freeze()
    gc.enable()
    with short_turns():
        serve(sys.stdin.buffer, sys.stdout.buffer)
    os._exit(0)  # nothing is left to be written, and whoever began this process waits for its end
