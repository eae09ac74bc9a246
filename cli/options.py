"""The options that commands share, and the command classes that carry them.

A global option stands before or after the verb; wherever it stands last, it counts. Options that are not built
yet are not declared, so that click refuses them.
"""

import difflib
import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import click

from cli.context import Session
from cli.output import print_text

TEXT_BYTES_MAX = 1024 * 1024  # far above every cap in ledger.limits: it only bounds what is read into memory

_EXAMPLE = ", such as 2026-01-02T03:04:05Z"  # of a time
_OUTPUTS = ("text", "wide", "json", "jsonl", "yaml", "csv", "name")

Function = TypeVar("Function", bound=Callable[..., Any])  # Any: a command's own parameters


class GlobalOption(click.Option):
    """An option of the whole program, which notes its value in the session instead of passing it on."""

    def __init__(self, *names: str, **settings: Any) -> None:  # Any: as in click
        super().__init__(list(names), expose_value=False, callback=_note, default=None, **settings)


def _note(context: click.Context, option: click.Parameter, value: Any) -> None:  # Any: as parsed
    session = context.ensure_object(Session)
    if value is not None:
        setattr(session, option.name, value)


class Repeated(GlobalOption):
    """A global flag that counts how often it was given."""

    def __init__(self, *names: str, **settings: Any) -> None:  # Any: as in click
        super().__init__(*names, count=True, **settings)

    def process_value(self, ctx: click.Context, value: Any) -> Any:  # Any: as in click
        return super().process_value(ctx, value or None)


def global_options() -> list[click.Parameter]:
    """Return the global options, fresh for one command."""
    return [
        GlobalOption("-o", "--output", type=click.Choice(_OUTPUTS), help="How to answer."),
        GlobalOption("--fields", metavar="F,G", help="Only these fields of each item of the answer."),
        GlobalOption("--project", metavar="NAME", help="The project  [env: CORRIGENDA_PROJECT]"),
        GlobalOption("--tenant", metavar="NAME", help="The tenant  [env: CORRIGENDA_TENANT]"),
        GlobalOption("--actor", metavar="WHO", help="Who acts: human:ana, agent:bot  [env: CORRIGENDA_ACTOR]"),
        GlobalOption("--database-url", metavar="URL", help="PostgreSQL  [env: CORRIGENDA_DATABASE_URL]"),
        GlobalOption("--home", metavar="DIR", help="Keys, index, embedded server  [env: CORRIGENDA_HOME]"),
        GlobalOption("-y", "--yes", is_flag=True, help="Answer yes to every question."),
        GlobalOption("--no-input", is_flag=True, help="Never ask, never wait for a person."),
        GlobalOption("-q", "--quiet", is_flag=True, help="No notes on stderr, only errors."),
        Repeated("-v", "--verbose", help="Log more on stderr; twice for everything."),
        GlobalOption("--progress/--no-progress", help="A progress bar, or none; a terminal has one by itself."),
        GlobalOption("--color", type=click.Choice(("auto", "always", "never")), help="Colours on stdout."),
        GlobalOption("--traceback", is_flag=True, help="Show where an error came from."),
    ]


class WithGlobals(click.Command):
    """A command that takes the global options too, and mentions them in one line of its help."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # Any: as in click
        super().__init__(*args, **settings)
        own = {name for param in self.params for name in param.opts}  # `log --actor` is log's own
        self.params.extend(option for option in global_options() if own.isdisjoint(option.opts))

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help  # click's own would not tell that stdout is full
        return option

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        shared = [option for option in options if isinstance(option, GlobalOption)]
        with formatter.section("Options"):
            formatter.write_dl(_records(ctx, [option for option in options if option not in shared]))
        with formatter.section("Global options, before or after the verb"):
            if ctx.parent is None:
                formatter.write_dl(_records(ctx, shared))
            else:
                formatter.write_text("-o, --project, --actor and the others of `corrigenda --help`.")


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        print_text(ctx.get_help())
        ctx.exit()


def _records(ctx: click.Context, options: Sequence[click.Option]) -> list[tuple[str, str]]:
    return [record for option in options if (record := option.get_help_record(ctx))]


class Verb(WithGlobals):
    """A command that does something."""


class Noun(WithGlobals, click.Group):
    """A group of verbs."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # Any: as in click
        super().__init__(*args, no_args_is_help=False, subcommand_metavar="VERB …", **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = self.near(ctx, args[0])
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {' or '.join(near)}?" if near else ""))
        return super().resolve_command(ctx, args)

    def near(self, ctx: click.Context, word: str) -> list[str]:
        """Return the commands that may have been meant by `word`, the likeliest first."""
        return difflib.get_close_matches(word, self.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(limit=1000)) for name, verb in self.commands.items()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        WithGlobals.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


class LazyNoun(Noun):
    """A group whose commands are imported when they are called: `lazy` maps a name to (module, attribute, help)."""

    def __init__(
        self,
        *args: Any,  # Any: as in click
        lazy: Mapping[str, tuple[str, str, str]],
        **settings: Any,  # Any: as in click
    ) -> None:
        super().__init__(*args, **settings)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        module, attribute, _ = self.lazy[cmd_name]
        return cast(click.Command, getattr(importlib.import_module(module), attribute))

    def near(self, ctx: click.Context, word: str) -> list[str]:
        """Look in the nouns too: `remember` is a verb of `memories`."""
        inner = {
            verb: f"{noun} {verb}"
            for noun in reversed(list(self.lazy))  # of verbs with one name the first noun's is meant
            if isinstance(group := self.get_command(ctx, noun), click.Group)
            for verb in group.list_commands(ctx)
        }
        known = inner | {name: name for name in self.lazy}
        if word in known:  # the noun was left out, and nothing else is meant
            return [known[word]]
        return [known[name] for name in difflib.get_close_matches(word, known)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, _, help) in self.lazy.items()])


def read_text(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the text meant by `-` (stdin), `@FILE`, `@@x` (a literal `@x`), or the words themselves.

    From stdin and files one final line break is dropped, because shells and editors add it.
    """
    if value == "-":
        return _decoded(_from_stdin(ctx, param), ctx, param)
    if value and value.startswith("@@"):
        return value[1:]
    if value and value.startswith("@"):
        return _decoded(_from_file(value[1:], ctx, param), ctx, param)
    return value


def read_json(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:  # Any: JSON
    """Return the JSON document meant by `@FILE`, `-` (stdin), or the words themselves."""
    text = read_text(ctx, param, value)
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter("the text is not JSON; give @FILE, or the document itself.", ctx, param) from error


def read_bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> bytes | None:
    """Return the bytes of the file that is named, or of stdin for `-`, exactly as they are."""
    if value is None:
        return None
    raw = _from_stdin(ctx, param) if value == "-" else _from_file(value, ctx, param)
    if len(raw) > TEXT_BYTES_MAX:
        raise click.BadParameter(f"the file has more than {TEXT_BYTES_MAX} bytes.", ctx, param)
    return raw


def _from_stdin(ctx: click.Context, param: click.Parameter) -> bytes:
    session = ctx.ensure_object(Session)
    stream = sys.stdin.buffer
    if session.stdin_taken:
        raise click.BadParameter("stdin can be read once; give one of the two texts as @FILE.", ctx, param)
    if session.no_input and stream.isatty():
        raise click.BadParameter("`-` would wait for a person to type, and --no-input forbids it.", ctx, param)
    session.stdin_taken = True
    return stream.read(TEXT_BYTES_MAX + 1)


def _from_file(path: str, ctx: click.Context, param: click.Parameter) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(TEXT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is no path"
        hint = " For a text that begins with @, write @@." if param.callback is read_text else ""
        raise click.BadParameter(f"cannot read the file {path!r}: {why}.{hint}", ctx, param) from error


def _decoded(raw: bytes, ctx: click.Context, param: click.Parameter) -> str:
    if len(raw) > TEXT_BYTES_MAX:
        raise click.BadParameter(f"the text has more than {TEXT_BYTES_MAX} bytes.", ctx, param)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"the text is not UTF-8: byte {error.start} is none of it.", ctx, param) from error
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def read_position(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check a position of the ledger: `SEQ`, or `INCARNATION.SEQ`."""
    if value is not None and not re.fullmatch(r"([0-9]{1,16}\.)?[0-9]{1,16}", value):
        raise click.BadParameter(f"{value!r} is not a position: SEQ or INCARNATION.SEQ, such as 812.", ctx, param)
    return value


Range = tuple[int | None, int | None]


def read_range(ctx: click.Context, param: click.Parameter, value: str | None) -> Range:
    """Return the ends of `A..B`, both included; either may be left out, and `A` alone is one position."""
    match = re.fullmatch(r"([0-9]{0,16})(\.\.)?([0-9]{0,16})", value or "..")
    if not match or value in ("", ".."):
        raise click.BadParameter(f"{value!r} is not a range of positions: A..B, A.., ..B or A.", ctx, param)
    first = int(match[1]) if match[1] else None
    last = int(match[3]) if match[3] else None if match[2] else first
    if first is not None and last is not None and last < first:
        raise click.BadParameter(f"the range {value} ends before it begins.", ctx, param)
    return first, last


def read_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return a time with its zone (RFC 3339) as the ledger writes times: UTC with six fraction digits."""
    from gateway.shapes import requests
    from ledger.errors import InvalidInputError

    try:
        return None if value is None else requests.parse_moment(value, "at")
    except InvalidInputError as error:
        (fault,) = error.details["fields"]
        problem = fault["problem"].removesuffix(_EXAMPLE)  # which the message gives anyhow
        message = f"{value!r} is not a time with its zone{_EXAMPLE}: it {problem}."
        raise click.BadParameter(message, ctx, param) from error


def read_at(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return a position as it is, and a time with its zone as the ledger writes times."""
    if value is None or re.fullmatch(r"([0-9]{1,16}\.)?[0-9]{1,16}", value):
        return value
    if not is_moment(value):
        message = (
            f"{value!r} is neither a position, such as 812, nor a time with its zone, such as 2026-01-02T03:04:05Z."
        )
        raise click.BadParameter(message, ctx, param)
    return read_moment(ctx, param, value)


def is_moment(word: str) -> bool:
    """Report whether a word is meant as a moment of the past: a position, or something that begins as a day."""
    return re.match(r"([0-9]{1,16}\.)?[0-9]{1,16}$|[0-9]{4,5}-[0-9]{2}-[0-9]{2}($|[T ])", word, re.ASCII) is not None


def read_event_type(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the type of an event: one that no event can have would only ever find nothing."""
    if value is None:
        return None
    from ledger.codec import EVENT_TYPES

    if value not in EVENT_TYPES:
        raise click.BadParameter(f"{value!r} is no type of event. There are {', '.join(EVENT_TYPES)}.", ctx, param)
    return value


def reads(function: Function) -> Function:
    """Give a reader `--min-position`."""
    return click.option(
        "--min-position", callback=read_position, metavar="SEQ", help="Wait until the ledger has reached this position."
    )(function)


def writes(
    *, reason_required: bool = False, names_revision: bool = True, whose: str = "the lineage's"
) -> Callable[[Function], Function]:
    """Give a writer its reason, idempotency key and dry run, and `--if-revision` where a lineage changes: `whose`."""

    def decorate(function: Function) -> Function:
        options = [
            click.option("--reason", required=reason_required, metavar="WHY", help="Why, for the record."),
            click.option("--idempotency-key", metavar="KEY", help="Makes it safe to send the same again."),
            click.option("--dry-run", is_flag=True, help="Check everything, write nothing."),
        ]
        if names_revision:
            help_text = f"Only if {whose} stream_version is still N."
            options.insert(2, click.option("--if-revision", type=int, metavar="N", help=help_text))
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
