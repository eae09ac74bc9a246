"""The policy: what is set, and setting it."""

from collections.abc import Mapping
from typing import Any

from gateway.service.base import UseCases
from gateway.shapes import requests
from gateway.shapes.replies.memories import Policy, PolicySetting
from gateway.shapes.replies.writes import Receipt
from gateway.writing import policies
from gateway.writing.page import Append


class PolicyUse(UseCases):
    """Show and set the policy of the project, and of the tenant."""

    def policy(self, **settings: Any) -> Policy:  # Any: a setting's value in any of its forms
        """Set what is named, if anything is, and return the policy.

        A name is given with `_` for `.`, or as it is: `policy(**{"corrections.top_k": 5})`. What holds already is left
        as it is. Errors: VALIDATION_FAILED (no such setting or value), FORBIDDEN_ACTOR.
        """
        wanted = self._changes(settings) if settings else {}
        if wanted:
            self.set_policy(wanted)
        return self.show_policy()

    def set_policy(
        self,
        settings: Mapping[str, Any],  # Any: as in `policy`
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Set one or several settings in one append. Errors: as `policy`, and NO_CHANGE if all of them hold already."""
        requests.parse(requests.ReasonRequest, reason=reason)
        wishes = policies.parse(settings)
        given = {
            "settings": {wish.setting: wish.value if wish.names is None else list(wish.names) for wish in wishes},
            "reason": reason,
        }

        def decide(append: Append) -> None:
            self._decisions.set_policy(append, wishes, reason)

        return self._write("policy_set", "admin", given, decide, idempotency_key, dry_run)

    def show_policy(self, *, min_position: str | None = None) -> Policy:
        """Return every setting with its value: the project's, where one is named, and the tenant's."""
        return self._read(min_position, self._policy)

    def _policy(self) -> Policy:
        project = self._references.project
        return Policy(
            items=tuple(
                self._setting(setting, project)
                for setting in policies.SETTINGS.values()
                if setting.of_tenant or self._project is not None
            ),
            position=self._reader.position,
            incarnation=self._reader.incarnation,
        )

    def _setting(self, setting: policies.Setting[Any], project: str | None) -> PolicySetting:  # Any: as in SETTINGS
        value, is_set = self._policies.shown(setting, project)
        return PolicySetting(
            name=setting.name, value=value, default=not is_set, of="tenant" if setting.of_tenant else "project"
        )

    def _changes(self, settings: Mapping[str, Any]) -> dict[str, Any]:  # Any: as in `policy`
        """Return what is not so yet; an unknown name or value is refused."""
        held = self.show_policy().values
        wishes = policies.parse(settings)
        wanted = {wish.setting: wish.value if wish.names is None else wish.names for wish in wishes}
        return {name: value for name, value in wanted.items() if held.get(name) != value}
