"""Payloads that are not there: erased with a certificate, or taken away.

A certificate stands later in the ledger than what it is about, so this is settled when all has been read. Of a part of
the ledger the rest is looked through for certificates, and for nothing else.
"""

from ledger import codec, digest, notes
from ledger.chain import Envelope
from ledger.digest import LedgerKeys
from ledger.erasure import Erased, ErasureCertified, is_signed
from ledger.governance import LedgerOpened
from ledger.notes import NotANote, VerifierKey
from ledger.store import Store
from ledger.verify.reading import Reading
from ledger.verify.report import Findings

_PAGE = 2_000


class Sought:
    """What one reading has found missing, and what became of it."""

    def __init__(self, store: Store, keys: LedgerKeys | None, reading: Reading, findings: Findings) -> None:
        self._store = store
        self._keys = keys
        self._reading = reading
        self._erasures = reading.erasures
        self._bad = findings.bad
        self._key: VerifierKey | None = None

    def settle(self, end: int | None) -> int:
        """Report every missing payload that no certificate accounts for, and return how many are accounted for.

        `end` is the last position that was to be read, None for all.
        """
        missing = set(self._erasures.absent)
        if not missing and not self._erasures.certificates:
            return 0
        if missing and end is not None:
            self._look_behind(end)
        self._key = self._public_key()
        certified = {one.position: one for one in self._erasures.certified(self._is_signed)}
        if unexplained := missing - certified.keys():
            self._blame(min(unexplained))
        first, last = self._reading.first, self._reading.last
        self._check_gone([one for at, one in certified.items() if first <= at <= last and at not in missing])
        if first == 0:
            self._check_counts()
        return len(missing & certified.keys())

    def _look_behind(self, end: int) -> None:
        """Look through the entries behind what was read for erasures; one that is not sealed says nothing."""
        while page := self._store.after(end, _PAGE):
            for stored in page:
                try:
                    envelope = codec.scan_envelope(stored.envelope)
                except codec.NotCanonical:
                    continue
                if self._keys is None or self._keys.is_sealed(digest.link(stored.envelope), stored.seal):
                    self._erasures.see(envelope)
            end = page[-1].seq

    def _public_key(self) -> VerifierKey | None:
        named = self._reading.public_key
        if named is None:
            for stored in self._store.at([0]):
                facts = codec.decode_envelope(stored.envelope).facts
                named = facts.public_key if isinstance(facts, LedgerOpened) else None
        try:
            return None if named is None else notes.parse_verifier_key(named)
        except NotANote:
            return None

    def _is_signed(self, certificate: Envelope) -> bool:
        return self._key is not None and is_signed(certificate, self._key)

    def _blame(self, position: int) -> None:
        named = position in self._erasures.positions
        found = "none, and an erasure without a certificate that the ledger's key signed" if named else "none"
        self._bad("payloads", position, "the payload that was committed to", found)

    def _check_gone(self, expected: list[Erased]) -> None:
        """What is certified to be destroyed must not be there: it was put back, or never deleted."""
        for stored in self._store.at([one.position for one in expected]) if expected else ():
            if stored.salt is not None or stored.body is not None:
                self._bad("payloads", stored.seq, "no payload: a certificate says that it was erased", "one")

    def _check_counts(self) -> None:
        for erasure, certificate in self._erasures.certificates.items():
            facts = certificate.facts
            named = self._erasures.named(erasure)
            if isinstance(facts, ErasureCertified) and facts.payloads != named:
                expected = f"a certificate for the {named} payloads that its erasure names"
                self._bad("payloads", certificate.seq, expected, f"one for {facts.payloads}")
