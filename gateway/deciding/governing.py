"""How a project, or the whole tenant, wants things done."""

from collections.abc import Sequence

import msgspec

from gateway.deciding.base import Deciding
from gateway.scope.names import no_project
from gateway.writing.page import Append
from gateway.writing.policies import SETTINGS
from ledger.errors import refuse
from ledger.policy import POLICY, PolicySet, SetPolicy


class Governing(Deciding):
    """Decides what the policy says."""

    def set_policy(self, append: Append, wishes: Sequence[SetPolicy], reason: str | None) -> None:
        """Decide settings, each with its event; NO_CHANGE if all of them have these values already."""
        project = self._project_of(append, wishes)
        for wish in wishes:
            stream = self._policies.stream(SETTINGS[wish.setting], project)
            append.decide_on(POLICY, stream, msgspec.structs.replace(wish, reason=reason))
        if not any(isinstance(event.facts, PolicySet) for _, event in append.events):
            refuse("NO_CHANGE", "Every setting that was named has this value already. Nothing was stored.")

    def _project_of(self, append: Append, wishes: Sequence[SetPolicy]) -> str:
        """Return the project whose settings are among the wishes; none is needed for the tenant's alone."""
        if all(SETTINGS[wish.setting].of_tenant for wish in wishes):
            return ""
        if self._project is None:
            raise no_project()
        return append.name("project", self._names.root, self._project)
