"""Texts to vectors by way of the database: a text is embedded once, and its vector sealed and kept.

A stored vector that does not carry the ledger's seal is not used: the text is embedded anew, and it is replaced. An
embedder that somebody else runs is recognised by what it makes of one text, which is kept likewise.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ledger.errors import CorrigendaError, refuse
from ledger.verified import VerifiedLedger
from projections.deadline import Deadline
from projections.embedders import Embedder, Sampled, Vectors, check_vectors
from projections.trying import Tried, embed_each

# What rounding and quantisation do to a model's vector keeps above this; another model's vector is far below it.
SIMILARITY_MIN = 0.95
BATCH_TEXTS = 64
OTHER_MODEL = "other_model"  # the reason where another model answers under a known name
_NO_PROJECT = ""
_Row = tuple[bytes, bytes]  # vector and seal, as they are stored

_log = logging.getLogger(__name__)


class StoredVectors:
    """The vectors of one ledger by one embedder."""

    def __init__(self, ledger: VerifiedLedger, embedder: Embedder) -> None:
        self._ledger = ledger
        self._embedder = embedder
        self._deadline = Deadline(embedder)

    def of(self, texts: Mapping[str, str]) -> Mapping[str, Vectors]:
        """Return a vector for each content digest (hex) of `texts`; what was not stored is embedded and stored.

        Raises EMBEDDER_UNAVAILABLE, with nothing stored, if the embedder makes no vectors, or bad ones.
        """
        if not texts:
            return {}
        found, refused = self._read(list(texts))
        missing = [content for content in texts if content not in found]
        if missing:
            fresh = self._embedder.embed([texts[content] for content in missing])
            check_vectors(fresh, len(missing), self._embedder.dimension)
            found |= self._store(dict(zip(missing, fresh, strict=True)), refused)
        return found

    def at_most(self, texts: Mapping[str, str], embedded_max: int) -> tuple[Mapping[str, Vectors], int]:
        """Return what `of` does, but embed at most so many that were not stored; and how many it embedded.

        The vectors of the others are left out.
        """
        found = self._read(list(texts))[0] if texts else {}
        missing = [content for content in texts if content not in found][:embedded_max]
        return {**found, **self.of({content: texts[content] for content in missing})}, len(missing)

    def tried(
        self,
        texts: Mapping[str, str],
        *,
        until: float | None = None,
        batch: int = BATCH_TEXTS,
        again: bool = False,
    ) -> Tried:
        """Return what `of` does for the texts that can be embedded, and the failures of the others.

        Every batch is stored as it is made; `until` is a moment of the monotonic clock. `again` says that the texts
        failed before (`embed_each`). Raises EMBEDDER_UNAVAILABLE where the embedder answers to nothing, or not in time.
        """
        vectors, refused = self._read(list(texts)) if texts else ({}, {})
        failed: dict[str, str] = {}
        missing = [content for content in texts if content not in vectors]
        for at in range(0, len(missing), batch):
            part = {content: texts[content] for content in missing[at : at + batch]}
            fresh = embed_each(lambda asked: self._checked(asked, until), part, again=again)
            failed |= fresh.failed
            if fresh.vectors:
                vectors |= self._store(fresh.vectors, refused)
        return Tried(vectors, failed)

    def _checked(self, texts: Sequence[str], until: float | None) -> Vectors:
        made = self._deadline.embed(texts, until)
        check_vectors(made, len(texts), self._embedder.dimension)
        return made

    def stored(self, contents: Iterable[str]) -> Mapping[str, Vectors]:
        """Return the vector of each of these content digests (hex) that is stored and sealed; nothing is embedded."""
        wanted = list(contents)
        return self._read(wanted)[0] if wanted else {}

    def first(self, content: str, vector: Vectors) -> Vectors:
        """Return the stored vector of a content digest; `vector` becomes that, if there was none."""
        found, refused = self._read([content])
        return found[content] if content in found else self._store({content: vector}, refused)[content]

    def _store(self, vectors: Mapping[str, Vectors], refused: Mapping[str, _Row]) -> Mapping[str, Vectors]:
        """Store vectors by content digest, in place of those of `refused`; return those that are stored afterwards.

        Another process may have been first; its vectors are the ones that count.
        """
        self._write("insert_vectors", vectors)
        if known := {content: vectors[content] for content in refused if content in vectors}:
            _log.warning("vectors.not_sealed", extra={"count": len(known)})
            old = [refused[content] for content in known]
            self._write(
                "replace_vectors", known, old_vectors=[vector for vector, _ in old], old_seals=[seal for _, seal in old]
            )
        return {**vectors, **self._read(list(vectors))[0]}

    def _read(self, contents: list[str]) -> tuple[dict[str, Vectors], dict[str, _Row]]:
        """Return the vectors that are ours, and vector and seal of each row that is not, by content digest."""
        keys, signature = self._ledger.keys, self._embedder.signature
        found: dict[str, Vectors] = {}
        refused: dict[str, _Row] = {}
        rows = self._ledger.store.vectors([bytes.fromhex(content) for content in contents], signature)
        for digest, vector, seal in rows:
            content, body = bytes(digest).hex(), bytes(vector)
            sealed = keys.vector(content, signature, body) == bytes(seal)
            if sealed and len(body) == 4 * self._embedder.dimension:
                found[content] = np.frombuffer(body, dtype="<f4")
            else:
                refused[content] = vector, seal
        return found, refused

    def _write(self, query: str, vectors: Mapping[str, Vectors], **more: object) -> None:
        keys, signature = self._ledger.keys, self._embedder.signature
        raw = {content: np.ascontiguousarray(vector, dtype="<f4").tobytes() for content, vector in vectors.items()}
        self._ledger.store.write(
            query,
            contents=[bytes.fromhex(content) for content in raw],
            signature=signature,
            vectors=[*raw.values()],
            seals=[keys.vector(content, signature, body) for content, body in raw.items()],
            **more,
        )


class Recognised:
    """An embedder that somebody else runs, used only once it makes of its sample what it made of it before."""

    def __init__(self, ledger: VerifiedLedger, inner: Embedder, sampled: Sampled) -> None:
        self._ledger = ledger
        self._inner = inner
        self._sampled = sampled
        self._known = False

    @property
    def signature(self) -> str:
        """Return the inner embedder's, once it is recognised. Raises EMBEDDER_UNAVAILABLE, as do the others here."""
        self._recognise()
        return self._inner.signature

    @property
    def dimension(self) -> int:
        """Return the inner embedder's."""
        return self._inner.dimension

    def may_sign(self, signature: str) -> bool:
        """Report whether a signature may be the inner embedder's, as far as that is known without asking it."""
        return self._sampled.may_sign(signature)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return what the inner embedder makes, once it is recognised."""
        self._recognise()
        return self._inner.embed(texts)

    def _recognise(self) -> None:
        if self._known:
            return
        text, vector = self._sampled.sample()
        content = self._ledger.keys.content(_NO_PROJECT, text)
        kept = StoredVectors(self._ledger, self._inner).first(content, vector)
        similarity = float(kept.astype(np.float64) @ vector.astype(np.float64))
        if similarity < SIMILARITY_MIN:
            refuse(
                "EMBEDDER_UNAVAILABLE",
                f"The model that made the stored vectors was expected under the name {self._inner.signature}; another "
                f"one answers (its vector of the same text has the similarity {similarity:.2f}). Nothing was stored. "
                "Serve the former model again, or give the new one a name of its own and run "
                "`corrigenda index reembed`.",
                reason=OTHER_MODEL,
                retriable=False,
            )
        self._known = True


class Absent:
    """An embedder that does not answer, by the name that an index gives it: enough to look, and it makes no vector."""

    def __init__(self, signature: str, dimension: int, cause: CorrigendaError) -> None:
        self.signature = signature
        self.dimension = dimension
        self._cause = cause

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raise EMBEDDER_UNAVAILABLE."""
        raise self._cause


def recognised(ledger: VerifiedLedger, embedder: Embedder | None) -> Embedder | None:
    """Return an embedder as it may be used with the vectors of a ledger."""
    return Recognised(ledger, embedder, embedder) if isinstance(embedder, Sampled) else embedder
