"""Texts to vectors by way of the database: a text is embedded once, and its vector sealed and kept.

A stored vector that does not carry the ledger's seal is not used: the text is embedded anew.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ledger.verified import VerifiedLedger
from projections.deadline import Deadline
from projections.embedders import Embedder, Vectors, check_vectors
from projections.trying import Tried, embed_each

BATCH_TEXTS = 64


class StoredVectors:
    """The vectors of one ledger by one embedder."""

    def __init__(self, ledger: VerifiedLedger, embedder: Embedder) -> None:
        self._ledger = ledger
        self._embedder = embedder
        self._deadline = Deadline(embedder)

    def of(self, texts: Mapping[str, str]) -> Mapping[str, Vectors]:
        """Return a vector for each content digest (hex) of `texts`; what was not stored is embedded and stored."""
        if not texts:
            return {}
        found = self._read(list(texts))
        missing = [content for content in texts if content not in found]
        if missing:
            fresh = self._embedder.embed([texts[content] for content in missing])
            self._store(missing, fresh)
            # Another process may have been first; its vectors are the ones that count.
            found = dict(zip(missing, fresh, strict=True)) | found | self._read(missing)
        return found

    def at_most(self, texts: Mapping[str, str], embedded_max: int) -> tuple[Mapping[str, Vectors], int]:
        """Return what `of` does, but embed at most so many that were not stored; and how many it embedded.

        The vectors of the others are left out.
        """
        found = self._read(list(texts)) if texts else {}
        missing = [content for content in texts if content not in found][:embedded_max]
        return {**found, **self.of({content: texts[content] for content in missing})}, len(missing)

    def stored(self, contents: Iterable[str]) -> Mapping[str, Vectors]:
        """Return the vectors of those contents for which one is stored."""
        listed = list(contents)
        return self._read(listed) if listed else {}

    def tried(self, texts: Mapping[str, str], *, until: float | None = None, batch: int = BATCH_TEXTS) -> Tried:
        """Return what `of` does for the texts that can be embedded, and the failures of the others.

        Every batch is stored as it is made; `until` is a moment of the monotonic clock. Raises EMBEDDER_UNAVAILABLE
        where the embedder answers to nothing, or not in time.
        """
        vectors, failed = {**self.stored(texts)}, dict[str, str]()
        missing = [content for content in texts if content not in vectors]
        for at in range(0, len(missing), batch):
            part = {content: texts[content] for content in missing[at : at + batch]}
            fresh = embed_each(lambda asked: self._checked(asked, until), part)
            failed |= fresh.failed
            if fresh.vectors:
                self._store([*fresh.vectors], [*fresh.vectors.values()])
                # Another process may have been first; its vectors are the ones that count.
                vectors |= {**fresh.vectors, **self._read([*fresh.vectors])}
        return Tried(vectors, failed)

    def _checked(self, texts: Sequence[str], until: float | None) -> Vectors:
        return check_vectors(self._deadline.embed(texts, until), len(texts), self._embedder.dimension)

    def _read(self, contents: list[str]) -> dict[str, Vectors]:
        keys, signature = self._ledger.keys, self._embedder.signature
        rows = self._ledger.store.vectors([bytes.fromhex(content) for content in contents], signature)
        return {
            bytes(content).hex(): np.frombuffer(vector, dtype="<f4")
            for content, vector, seal in rows
            if vector is not None
            and keys.vector(bytes(content).hex(), signature, bytes(vector)) == bytes(seal or b"")
            and len(vector) == 4 * self._embedder.dimension
        }

    def _store(self, contents: list[str], vectors: Iterable[Vectors]) -> None:
        keys, signature = self._ledger.keys, self._embedder.signature
        raw = [np.ascontiguousarray(vector, dtype="<f4").tobytes() for vector in vectors]
        self._ledger.store.write(
            "insert_vectors",
            contents=[bytes.fromhex(content) for content in contents],
            signature=signature,
            vectors=raw,
            seals=[keys.vector(content, signature, body) for content, body in zip(contents, raw, strict=True)],
        )
