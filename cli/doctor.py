"""`corrigenda doctor`: what is wrong with this installation, and what mends it. It makes and mends nothing."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import click

from cli.context import Session, pass_session
from cli.exits import DONE, UNAVAILABLE
from cli.options import Verb
from cli.output import give
from cli.text import Paint, inert, table


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; `mend` says what to do where it is not well."""

    name: str
    ok: bool
    message: str
    mend: str | None


@click.command(cls=Verb, epilog="\b\nExample:\n  corrigenda doctor -o json")
@pass_session
@click.pass_context
def doctor(context: click.Context, session: Session) -> None:
    """Check this installation, one line per check with its mend.

    Exit 0 only if every check is well.
    """
    checks, code = _checks(session)
    answer = {"ok": code == DONE, "items": [asdict(check) for check in checks]}
    give(session, answer, lambda: _lines(checks, paint=session.paint), items="items")
    context.exit(code)


def _checks(session: Session) -> tuple[list[Check], int]:
    from ledger.errors import CorrigendaError

    try:
        with session.bare(create=False) as bare:
            checks = [Check(*found) for found in bare.doctor()]
        if all(check.ok for check in checks):
            checks.append(_index(session))
    except CorrigendaError as error:  # a ledger that cannot be opened is a finding here
        return [Check("open", False, error.message, None)], error.exit_code
    return checks, DONE if all(check.ok for check in checks) else UNAVAILABLE


def _index(session: Session) -> Check:
    """Search the index for some of its own entries; only where all else is well, because the whole system is opened."""
    from ledger.errors import CorrigendaError

    try:
        with session.gateway(create=False, replay=False) as gateway:
            ok, message = gateway.probe_index()
    except CorrigendaError as error:
        return Check("index", False, error.message, None)
    return Check("index", ok, message, None if ok else "corrigenda recover, or corrigenda index rebuild")


def _lines(checks: list[Check], *, paint: Paint) -> str:
    rows = [(check.name, "ok" if check.ok else "FAIL", inert(message)) for check, message in _told(checks)]
    lines = table(rows).splitlines()
    shown: list[str] = []
    for line, check in zip(lines, checks, strict=True):
        shown.append(line if check.ok else paint("red", line))
        if not check.ok and check.mend:
            shown.append(f"  mend: {inert(check.mend)}")
    return "\n".join(shown)


def _told(checks: list[Check]) -> Iterator[tuple[Check, str]]:
    """Give each check its message; what fails only because the database did is told in short."""
    dead = next((check for check in checks if check.name == "database" and not check.ok), None)
    for check in checks:
        again = dead is not None and check is not dead and not check.ok and check.message == dead.message
        yield check, "not looked at: the database does not answer" if again else check.message
