"""The ledger's own events: its opening, and the names that callers choose.

A name's stream is the keyed digest of (kind, parent, name), so its first event is the uniqueness of the name. What
an id is called can be erased with the payload; the id stays.
"""

from msgspec import Struct

from ledger.message import Count, Facts, Payload


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


CANONICAL_FORM = "jcs-closed-1"
OPENER = "system"  # the actor of event 0: nobody has a name yet
