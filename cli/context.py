"""What the global options said, and the ways of opening the ledger with it.

Nothing is opened, and nothing heavy is imported, before a command asks for it. No command opens a ledger by
any other way than through here.
"""

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gateway.service import Gateway
    from gateway.upkeep.bare import BareGateway

_OURS = ("cli", "corrigenda", "gateway", "ledger", "migrations", "projections")  # the loggers that are ours
_NOT_BUILT = ("CORRIGENDA_SERVER", "CORRIGENDA_TOKEN", "CORRIGENDA_TOKEN_FILE")


@dataclass(slots=True)
class Session:
    """The global options of one invocation; None where the environment or a default decides."""

    output: str = "text"
    fields: str | None = None
    project: str | None = None
    tenant: str | None = None
    actor: str | None = None
    database_url: str | None = None
    home: str | None = None
    color: str = "auto"
    progress: bool | None = None
    quiet: bool = False
    verbose: int = 0
    no_input: bool = False
    yes: bool = False
    traceback: bool = False
    stdin_taken: bool = False

    @property
    def machine(self) -> bool:
        """Report whether stdout is for a program: one document, and no prose anywhere."""
        return self.output not in ("text", "wide")

    @property
    def tells(self) -> bool:
        """Report whether an answer is told in words: not to a program, and not cut down to some of its fields."""
        return not self.machine and self.fields is None

    @property
    def coloured(self) -> bool:
        """Report whether text on stdout may carry colours: `--color`, then NO_COLOR, FORCE_COLOR, then a terminal."""
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()

    def paint(self, style: str, text: str) -> str:
        """Return `text` in a colour where colours are wanted, else as it is."""
        return click.style(text, bold=style == "bold", fg=None if style == "bold" else style) if self.coloured else text

    @contextmanager
    def gateway(
        self, *, create: bool = True, replay: bool = True, reach: str | None = None
    ) -> Generator["Gateway", None, None]:
        """Open the whole system and wait, if asked, until it has reached a position.

        The chain is walked at opening, so a broken one is INTEGRITY_BROKEN. `replay=False` leaves the start-up
        recovery to the caller, or undone where no index is asked; `create=False` makes nothing, as in `bare`.
        """
        self._prepare()
        from gateway.bootstrap import open_gateway

        with open_gateway(
            database_url=self.database_url,
            home=self.home,
            tenant=self.tenant,
            project=self.project,
            actor=self.actor,
            create=create,
            replay=replay,
            say=self._say,
        ) as gateway:
            if reach is not None:
                gateway.reach(reach)
            yield gateway

    @contextmanager
    def bare(self, *, create: bool = True, reach: str | None = None) -> Generator["BareGateway", None, None]:
        """Open the ledger without walking it, for what must answer on a broken chain too.

        `create=False` makes nothing: no home, no server, no ledger, no key.
        """
        self._prepare()
        from gateway.upkeep.bare import open_bare

        with open_bare(
            database_url=self.database_url,
            home=self.home,
            tenant=self.tenant,
            project=self.project,
            create=create,
            say=self._say,
        ) as bare:
            if reach is not None:
                bare.reach(reach)
            yield bare

    @property
    def has_project(self) -> bool:
        """Report whether a project is named."""
        return bool(self.project or os.environ.get("CORRIGENDA_PROJECT"))

    def require_project(self) -> None:
        """Refuse to go on without a project, before anything is opened: a default would put things in a wrong place."""
        if not self.has_project:
            raise click.UsageError("A project is needed, and none is named. Give --project, or set CORRIGENDA_PROJECT.")

    def _say(self, text: str) -> None:
        """Tell a person why it takes long; nobody who asked for quiet, and no program."""
        if not self.quiet and not self.machine:
            click.echo(text, err=True)

    def _prepare(self) -> None:
        for name in _NOT_BUILT:
            if os.environ.get(name):
                raise click.UsageError(f"{name} is set, but this version speaks to a database only. Unset it.")
        if self.quiet or self.verbose:
            self._log()

    def _log(self) -> None:
        """Log on stderr: of others what went wrong, of our own modules what `-q` and `-v` ask for."""
        import logging

        logging.basicConfig(stream=sys.stderr)
        logging.getLogger().setLevel(logging.ERROR if self.quiet else logging.WARNING)
        level = logging.ERROR if self.quiet else logging.INFO if self.verbose == 1 else logging.DEBUG
        for name in _OURS:
            logging.getLogger(name).setLevel(level)


pass_session = click.make_pass_decorator(Session, ensure=True)


def full_id(gateway: "Gateway", text: str) -> str:
    """Return the id that `text` abbreviates. A caller's own name is never completed; two matches are exit 2.

    An abbreviation that is too short is exit 2 as well, unless a caller has named a memory so.
    """
    from ledger.ids import is_ours, is_prefix_of_ours

    if re.fullmatch("(mem|rev|cor|op|trc)_[0-9A-HJKMNP-TV-Z]{1,5}", text):
        return _short_name(gateway, text)
    if is_ours(text) or not is_prefix_of_ours(text):
        return text
    matches = gateway.complete(text)
    if len(matches) > 1:
        raise click.UsageError(f"{text} is the beginning of {len(matches)} ids: {', '.join(matches)}. Give more of it.")
    return matches[0] if matches else text


def is_kind(identifier: str, kind: str) -> bool:
    """Report whether an id is one of ours with that prefix."""
    from ledger.ids import is_ours, kind_of

    return is_ours(identifier) and kind_of(identifier) == kind


def _short_name(gateway: "Gateway", text: str) -> str:
    from ledger.errors import NotFoundError

    try:
        gateway.history(text)
    except NotFoundError as error:
        raise click.UsageError(
            f"{text} is too short for an abbreviated id: give six characters or more after the underscore."
        ) from error
    return text
