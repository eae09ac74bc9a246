"""Which learnings a correction contradicts, and whether that was looked for."""

from gateway.permissions import Actor


def contradiction_of(actor: Actor) -> str:
    """Return what a correction's facts say of the check: `off` for what an agent reports, `deferred` for a person's."""
    return "deferred" if actor.kind == "human" else "off"
