"""The ledger's own events: its opening, names, what was handed out, what was taken over, what was given up.

A name's stream is the keyed digest of (kind, parent, name), so its first event is the uniqueness of the name. What
an id is called can be erased with the payload; the id stays.
"""

from collections.abc import Sequence

from msgspec import Struct

from ledger.decider import Command, Decider, State
from ledger.message import Count, Event, Facts, Payload, Reason


class Algorithms(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each kind of hash and signature in the ledger is made with."""

    chain: str = "blake3-derive-key"
    commitment: str = "sha256-salted"
    seal: str = "blake3-keyed"
    signature: str = "ed25519"
    tree: str = "sha256-rfc6962"


class LedgerOpened(Facts, frozen=True, kw_only=True):
    """Event 0: what every later byte of this ledger relies on. `public_key` is a C2SP verifier key."""

    algorithms: Algorithms
    canonical_form: str
    incarnation: Count
    origin: str
    public_key: str


class LedgerName(Payload, frozen=True, kw_only=True):
    """The tenant whose ledger this is."""

    tenant: str


class NameAssigned(Facts, frozen=True, kw_only=True):
    """An id of ours was given to a caller's name. `parent` is the project's id, or the ledger's."""

    id: str
    kind: str
    parent: str


class AssignedName(Payload, frozen=True, kw_only=True):
    """The name, as the caller wrote it."""

    name: str


class RecordExport(Command, frozen=True, kw_only=True):
    """Record that a bundle is handed out: of which kind, how many events, and at which checkpoint of the log."""

    kind: str
    count: int
    origin: str
    size: int
    root: str
    handed: "HandedOut"


class ExportMade(Facts, frozen=True, kw_only=True):
    """A bundle was handed out."""

    count: Count
    kind: str
    origin: str
    root: str
    size: Count


class HandedOut(Payload, frozen=True, kw_only=True):
    """What was handed out, by the ids that were asked for, and to whom."""

    ids: tuple[str, ...]
    recipient: str | None


class SkipEffect(Command, frozen=True, kw_only=True):
    """Give up on carrying an event's effects into one target."""

    position: int
    target: str


class OutboxSkipped(Facts, frozen=True, kw_only=True):
    """The effects of the event at `position` stay out of a target: an index, named by its embedder's signature."""

    position: Count
    target: str


class LedgerState(State, frozen=True, kw_only=True):
    """The ledger's own stream, and what was given up: position and target."""

    skipped: frozenset[tuple[int, str]] = frozenset()


class RecordImport(Command, frozen=True, kw_only=True):
    """Record that events of another ledger follow: how many, out of what, and the checkpoint that was given for it."""

    kind: str
    count: int
    origin: str
    size: int
    root: str
    taken: "TakenOver"


class LedgerImported(Facts, frozen=True, kw_only=True):
    """The `count` entries that follow were taken over from another ledger, out of a file of that kind."""

    count: Count
    kind: str
    origin: str
    root: str
    size: Count


class TakenOver(Payload, frozen=True, kw_only=True):
    """When each of the entries that follow was first recorded, in their order."""

    recorded_at: tuple[str, ...]


def decide(state: LedgerState, command: Command) -> Sequence[Event]:
    """Return the event of a command. Nothing stands against what is only recorded; giving up again changes nothing."""
    match command:
        case RecordExport():
            facts = ExportMade(
                count=command.count, kind=command.kind, origin=command.origin, root=command.root, size=command.size
            )
            return [Event(facts=facts, payload=command.handed, position=command.first)]
        case SkipEffect():
            if (command.position, command.target) in state.skipped:
                return []
            facts = OutboxSkipped(position=command.position, target=command.target)
            return [Event(facts=facts, payload=Reason(reason=command.reason), position=command.first)]
        case RecordImport():
            facts = LedgerImported(
                count=command.count, kind=command.kind, origin=command.origin, root=command.root, size=command.size
            )
            return [Event(facts=facts, payload=command.taken, position=command.first)]
        case _:
            raise TypeError(f"{type(command).__name__} is no command of a ledger")


def evolve(state: LedgerState, event: Event) -> LedgerState:
    """Return the ledger's own stream after an event."""
    facts = event.facts
    gone = {(facts.position, facts.target)} if isinstance(facts, OutboxSkipped) else set[tuple[int, str]]()
    return LedgerState(version=state.version + 1, skipped=state.skipped | gone)


LEDGER: Decider[Command, Event, LedgerState] = Decider(LedgerState(), decide, evolve)
CANONICAL_FORM = "jcs-closed-1"
OPENER = "system"  # the actor of event 0: nobody has a name yet
