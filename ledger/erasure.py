"""Erasures: which payloads were destroyed, and the signed certificate without which a missing one is tampering.

`payload.erased.v1` names the positions; `erasure.certified.v1`, later and in the erasure's own stream, says what was
reached and what was not, and carries a signature of the ledger's signing key over that. A reader may say "erased" once
the first is there; whoever verifies asks for both.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

import msgspec
from msgspec import Struct

from ledger import notes
from ledger.chain import Envelope
from ledger.decider import Command, Decider, State
from ledger.errors import refuse
from ledger.memories.facts import PayloadErased
from ledger.message import Count, Event, Facts, Reason
from ledger.notes import NotANote, VerifierKey

FORMAT = "corrigenda-erasure/1"
OF_ERASURES = frozenset({"payload.erased.v1", "erasure.certified.v1"})  # what a reading has to show to `Erasures`


class Swept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One store that an erasure reached: what it deleted there, and what it found left when it looked again."""

    deleted: Count
    residual: Count
    store: str


class NotReached(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an erasure does not reach: backups, replicas, exports, other hosts. `until` is when it will be gone."""

    store: str
    until: str | None


class ErasureCertified(Facts, frozen=True, kw_only=True):
    """An erasure was carried out, `by` memory, scope or subject. `payloads` were destroyed; `signature` is base64."""

    by: str
    not_reached: tuple[NotReached, ...]
    payloads: Count
    signature: str
    stores: tuple[Swept, ...]


class CertifyErasure(Command, frozen=True, kw_only=True):
    """Record the certificate of an erasure that was carried out."""

    facts: ErasureCertified


class ErasureState(State, frozen=True, kw_only=True):
    """One erasure: whether its certificate is there."""

    is_certified: bool = False


def decide(state: ErasureState, command: Command) -> Sequence[Event]:
    """Return the event of a command, or refuse it: an erasure is certified once."""
    match command:
        case CertifyErasure(facts=facts, first=first, reason=reason):
            if state.is_certified:
                refuse("NO_CHANGE", "This erasure has its certificate already. Look at its events.")
            return (Event(facts=facts, payload=Reason(reason=reason), position=first),)
        case _:
            raise TypeError(f"{type(command).__name__} is no command of an erasure")


def evolve(state: ErasureState, event: Event) -> ErasureState:
    """Return the erasure after an event."""
    match event.facts:
        case ErasureCertified():
            return ErasureState(version=state.version + 1, is_certified=True)
        case _:
            raise TypeError(f"{type(event.facts).__name__} is no event of an erasure")


ERASURE: Decider[Command, Event, ErasureState] = Decider(ErasureState(), decide, evolve)


class Erased(NamedTuple):
    """One payload that is gone with a certificate: its position, the erasure, and where both events stand."""

    position: int
    erasure: str
    erased_by: int
    certified_by: int

    def line(self) -> bytes:
        """Return it as a line of a bundle's `erasures.ndjson`."""
        row = {
            "seq": self.position,
            "erasure": self.erasure,
            "erased_by": self.erased_by,
            "certified_by": self.certified_by,
        }
        return msgspec.json.encode(row) + b"\n"


def statement(origin: str, erasure: str, facts: ErasureCertified) -> str:
    """Return the text that a certificate's signature is over: format, log, erasure, and what the facts say."""
    said = msgspec.to_builtins(facts)
    del said["signature"]
    return f"{FORMAT}\n{origin}\n{erasure}\n{msgspec.json.encode(said, order='sorted').decode()}\n"


def is_signed(envelope: Envelope, key: VerifierKey) -> bool:
    """Report whether a certificate bears the signature of a key, under the log's own name."""
    facts = envelope.facts
    if not isinstance(facts, ErasureCertified):
        return False
    text = statement(envelope.log, envelope.stream, facts)
    try:
        notes.open_note(f"{text}\n\u2014 {envelope.log} {facts.signature}\n".encode(), [key])
    except NotANote:
        return False
    return True


class Erasures:
    """What one reading of a log, or of a part of it, meets of erasures. Entries are shown to it in their order."""

    def __init__(self) -> None:
        self._absent: set[int] = set()
        self._erased: dict[int, tuple[int, ...]] = {}  # position of a payload: those of the events that name it
        self._of: dict[int, str] = {}  # position of such an event: its erasure
        self._certificates: dict[str, Envelope] = {}

    def miss(self, position: int) -> None:
        """Take note of an entry whose payload was committed to and is not there."""
        self._absent.add(position)

    def see(self, envelope: Envelope) -> None:
        """Take note of an entry, if it is of an erasure."""
        match envelope.facts:
            case PayloadErased(erasure=erasure, positions=positions):
                self._of[envelope.seq] = erasure
                for position in positions:
                    if position < envelope.seq:
                        self._erased[position] = (*self._erased.get(position, ()), envelope.seq)
            case ErasureCertified():
                self._certificates.setdefault(envelope.stream, envelope)
            case _:
                pass

    @property
    def absent(self) -> set[int]:
        """Return the positions whose payload is missing."""
        return self._absent

    @property
    def positions(self) -> Set[int]:
        """Return the positions that erasures name."""
        return self._erased.keys()

    @property
    def certificates(self) -> dict[str, Envelope]:
        """Return the certificate of each erasure that has one."""
        return self._certificates

    def named(self, erasure: str) -> int:
        """Return how many payloads an erasure's events name."""
        return sum(any(self._of[at] == erasure for at in named) for named in self._erased.values())

    def certified(self, signed: Callable[[Envelope], bool]) -> Iterator[Erased]:
        """Yield each payload that was erased with a certificate that is later and signed, ascending, there or not."""
        good = {erasure: one.seq for erasure, one in self._certificates.items() if signed(one)}
        for position, named in sorted(self._erased.items()):
            found = (Erased(position, self._of[at], at, good.get(self._of[at], -1)) for at in named)
            if one := next((one for one in found if one.certified_by > one.erased_by), None):
                yield one
