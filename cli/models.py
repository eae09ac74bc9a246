"""`corrigenda projections`: the read models, which can always be made anew from the events. Exit 12 if they differ."""

from typing import TYPE_CHECKING

import click

from cli.context import Session, pass_session
from cli.options import Noun, Verb, reads
from cli.output import give
from cli.progress import metered
from cli.text import count, inert, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.shapes.replies.models import ModelDifference, ModelsCheck, ModelsStatus, Rebuild


@click.group("projections", cls=Noun)
def projections() -> None:
    """Rebuild and check the read models, and say how far they are."""


@projections.command(
    cls=Verb,
    epilog="\b\nExamples:\n  corrigenda projections rebuild\n  corrigenda projections rebuild --progress -o json",
)
@click.option("--all", "everything", is_flag=True, help="All read models; they are always rebuilt together.")
@pass_session
@click.pass_context
def rebuild(context: click.Context, session: Session, everything: bool) -> None:
    """Make all read models anew from the events, and swap.

    They are built beside the live ones, while everybody reads and writes on; only the swap holds writers up, for some
    milliseconds. One that was interrupted goes on where it was. What was wrong in the old ones is reported, exit 12,
    and gone with them.
    """
    with session.gateway(create=False, replay=False) as gateway, metered(session, ("projected", "events")) as meter:
        done = gateway.rebuild(progress=meter.show)
    give(session, done, lambda: _rebuilt(done))
    context.exit(done.exit_code)


@projections.command(cls=Verb, epilog="\b\nExample:\n  corrigenda projections verify || corrigenda projections rebuild")
@reads
@pass_session
@click.pass_context
def verify(context: click.Context, session: Session, min_position: str | None) -> None:
    """Compare the read models with what the events make of them.

    Every event is read and checked for that. Exit 12 names, for each table that differs, the first row; `corrigenda
    projections rebuild` mends that. It also names what supersedes itself through others. Nothing is changed.
    """
    with session.bare(create=False, reach=min_position) as bare, metered(session, ("compared", "events")) as meter:
        found = bare.check_models(progress=meter.show)
    give(session, found, lambda: _checked(found))
    context.exit(found.exit_code)


@projections.command(cls=Verb, epilog="\b\nExample:\n  corrigenda projections status -o json")
@reads
@pass_session
def status(session: Session, min_position: str | None) -> None:
    """Show which generation is live, what it holds, and whether another one is being built."""
    with session.bare(create=False, reach=min_position) as bare:
        found = bare.models_status()
    give(session, found, lambda: _status(found))


def _rebuilt(done: "Rebuild") -> str:
    went_on = f", gone on with after position {done.began_at}" if done.began_at >= 0 else ""
    lines = [
        f"generation {done.generation} is live, generation {done.retired} is retired{went_on}",
        f"{count(done.position + 1, 'event')} taken up; writes were held up for {done.locked_ms} ms",
        *_rows(done.rows),
    ]
    if done.differences:
        lines += ["the retired generation was not what the events say:", *_differences(done.differences)]
    return "\n".join(lines)


def _checked(found: "ModelsCheck") -> str:
    if found.ok:
        return f"ok: {count(sum(found.rows.values()), 'row')} of generation {found.generation} are what the events say"
    lines: list[str] = []
    if found.differences:
        lines += [
            f"NOT OK: generation {found.generation} is not what the events say; exit {found.exit_code}",
            *_differences(found.differences),
            "`corrigenda projections rebuild` makes it anew",
        ]
    if found.cycles:
        lines += [f"NOT OK: something supersedes itself; exit {found.exit_code}", *map(inert, found.cycles)]
    return "\n".join(lines)


def _status(found: "ModelsStatus") -> str:
    building = found.rebuild
    mend = (
        "" if found.version == found.expected_version else f", and this program writes version {found.expected_version}"
    )
    facts = [
        ("generation", f"{found.generation}, of version {found.version}{mend}"),
        ("position", f"{found.position}, {found.lag} behind" if found.lag else f"{found.position}"),
    ]
    if building is not None:
        facts.append(("building", f"generation {building['generation']}, up to position {building['position']}"))
    return "\n".join([*table(facts).splitlines(), *_rows(found.rows)])


def _rows(rows: dict[str, int]) -> list[str]:
    return table([(name, f"{number:,} rows") for name, number in rows.items()]).splitlines()


def _differences(found: "Sequence[ModelDifference]") -> list[str]:
    lines: list[str] = []
    for one in found:
        lines.append(f"{one.table} {inert(one.key)}")
        lines += [f"  expected {inert(part)}" for part in one.expected or ("no such row",)]
        lines += [f"  found    {inert(part)}" for part in one.found or ("no such row",)]
    return lines
