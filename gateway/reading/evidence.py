"""Evidence as it is kept: found by project and hash, and its bytes believed only while they still have that hash."""

from gateway.shapes.replies.memories import Evidence
from ledger.chain import broken
from ledger.digest import public
from ledger.errors import failure
from ledger.evidence import EvidenceAdded, EvidenceText
from ledger.verified import Recorded, VerifiedLedger


class EvidenceReader:
    """Reads the evidence of one ledger. The caller has caught up."""

    def __init__(self, ledger: VerifiedLedger) -> None:
        self._ledger = ledger

    def stream(self, project: str, hash: str) -> str:
        """Return the stream of an object of evidence."""
        return self._ledger.keys.evidence(project, hash)

    def show(self, project: str | None, hash: str) -> Evidence:
        """Return what is known of an object, without its bytes, or EVIDENCE_NOT_FOUND."""
        found, text = self._found(project, hash)
        facts = found.entry.envelope.facts
        if not isinstance(facts, EvidenceAdded):
            raise broken(found.entry.position, "streams", "an event of evidence", "another")
        return Evidence(
            hash=hash,
            size=facts.size,
            stored=not facts.external and text is not None,
            media_type=facts.media_type,
            name=None if text is None else text.name,
            uri=None if text is None else text.uri,
            added_at=found.entry.envelope.at,
            added=found.entry.position,
            position=self._ledger.walk.position,
            incarnation=self._ledger.head_row.incarnation if self._ledger.head_row else 1,
            erased=text is None,
        )

    def read(self, project: str | None, hash: str) -> bytes:
        """Return an object's bytes. Other bytes than were kept, or none, are INTEGRITY_BROKEN."""
        known = self.show(project, hash)
        if known.erased:
            raise failure(
                "EVIDENCE_NOT_FOUND",
                "This evidence was erased: that it was here, and its hash, is all that is known of it. An "
                "erasure is not undone.",
            )
        if not known.stored or project is None:
            raise failure(
                "EVIDENCE_NOT_FOUND",
                "The bytes of this evidence are not kept here: it was added as a mention of what lies elsewhere. "
                "Where, its uri says (`corrigenda evidence show HASH`).",
            )
        body = self._ledger.store.object(self.stream(project, hash))
        if body is None or public(body) != hash:
            found = "none" if body is None else "others"
            raise broken(known.added or 0, "payloads", "the bytes of this evidence", found)
        return body

    def _found(self, project: str | None, hash: str) -> tuple[Recorded, EvidenceText | None]:
        """Return the event that an object was added with, and what that says; None where it was erased."""
        history = None if project is None else self._ledger.stream(self.stream(project, hash))
        if not history:
            raise failure(
                "EVIDENCE_NOT_FOUND",
                "There is no such evidence in this project. Check the hash and the project (--project, "
                "CORRIGENDA_PROJECT).",
            )
        last = history[-1]
        if last.payload is None:  # whose stream it is, says whose hash it was
            return last, None
        if not isinstance(last.payload, EvidenceText) or last.payload.hash != hash:
            raise broken(last.entry.position, "payloads", "the evidence that was asked for", "another")
        return last, last.payload
