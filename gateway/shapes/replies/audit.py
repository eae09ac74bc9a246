"""What is verified, and what is handed out to be verified."""

from gateway.shapes.replies.base import Reply


class Check(Reply, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one check of a verification. `status` is ok, failed or skipped; `why` says what limits it."""

    status: str
    first_bad_position: int | None = None
    expected: str | None = None
    found: str | None = None
    why: str | None = None


class Verification(Reply, frozen=True, kw_only=True):
    """What one pass over everything that is stored found. `exit_code` is 0, or the lowest of 10 to 15 that applies."""

    ok: bool
    exit_code: int
    events: int
    size: int
    root: str | None
    head: str | None
    checks: dict[str, Check]
    unanchored_tail: int
    erased: int


class Export(Reply, frozen=True, kw_only=True):
    """A bundle that was handed out: where it lies, what it proves, and the event that records it.

    `payloads_withheld` is None where a bundle was there already. `size` and `root` are the checkpoint's; `bytes` is
    what the bundle takes on disk.
    """

    path: str
    kind: str
    profile: str
    events: int
    payloads_withheld: int | None
    origin: str
    size: int
    root: str
    bytes: int
    position: int
    incarnation: int
    trace_id: str
    replayed: bool
    warnings: tuple[str, ...]


class BundleVerification(Reply, frozen=True, kw_only=True):
    """What a bundle proves, in words (`says`) and figures. `exit_code` is 0, 14 (tampered) or 15 (not verifiable).

    `verdict` is verified (`with payloads withheld`, `with payloads erased with certificate`), tampered or unverifiable;
    `finding` is the first thing that is wrong: check, place, expected, found. `payloads` counts those given, withheld,
    erased, and events without one.
    """

    ok: bool
    exit_code: int
    verdict: str
    says: tuple[str, ...]
    profile: str | None
    origin: str | None
    size: int | None
    root: str | None
    key_id: str | None
    events: int
    streams: tuple[dict[str, str | int], ...]
    stream_count: int
    payloads: dict[str, int]
    finding: dict[str, str] | None
