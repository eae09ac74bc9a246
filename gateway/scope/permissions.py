"""Who may do what. Authority follows the credential; on a database the operator's word is the credential."""

from collections.abc import Iterable

from msgspec import Struct

from ledger.errors import refuse

AGENT = frozenset({"read", "write", "submit", "contest"})
HUMAN = AGENT | {"correct", "decide", "admit", "revoke", "export"}
ALL = HUMAN | {"recover", "erase", "admin"}
SERVICE = frozenset({"read"})

_BY_KIND = {"human": ALL, "agent": AGENT, "service": SERVICE}


class Actor(Struct, frozen=True):
    """Who acts: `kind:name`, and what that may do."""

    name: str
    permissions: frozenset[str]

    @property
    def kind(self) -> str:
        """Return human, agent or service."""
        return self.name.partition(":")[0]

    def require(self, permission: str) -> None:
        """Refuse with FORBIDDEN_ACTOR, naming the permission, unless the actor has it."""
        if permission not in self.permissions:
            refuse(
                "FORBIDDEN_ACTOR",
                f"This act needs the permission '{permission}', and the actor, of kind {self.kind}, does not have it. "
                "Nothing was stored. Ask somebody who has it.",
                permission=permission,
            )


def granted(actor: str, permissions: Iterable[str] | None) -> frozenset[str]:
    """Return what an actor may do: what was given to it, else the default of its kind.

    An unknown permission is VALIDATION_FAILED.
    """
    if permissions is None:
        return _BY_KIND[actor.partition(":")[0]]
    if isinstance(permissions, str | bytes) or not isinstance(permissions, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - as it comes from a caller
        refuse("VALIDATION_FAILED", "Permissions are a list of their names, and something else was given.")
    asked = frozenset(map(str, permissions))
    if asked - ALL:
        refuse("VALIDATION_FAILED", f"There is no such permission: {', '.join(sorted(asked - ALL))}.")
    return asked
