"""Which learnings a correction contradicts, and whether that was looked for."""

from gateway.page import Append
from gateway.permissions import Actor
from gateway.policies import INVALIDATE_CONTRADICTED, Policies


def contradiction_of(append: Append, actor: Actor, policies: Policies, project: str) -> str:
    """Return what a correction's facts say of the check, for the append that records or confirms it.

    `off` for what an agent reports and where the policy says so; else `deferred`: it is still to be made.
    """
    wanted = actor.kind == "human" and policies.within(append, INVALIDATE_CONTRADICTED, project)
    return "deferred" if wanted else "off"
