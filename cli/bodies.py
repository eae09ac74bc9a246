"""`--input FILE|-`: a request as one JSON document, in place of the words and options that would say the same.

What the fields hold is checked by the gateway, like any request; here only that it is a document, and the only one.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from cli.options import GlobalOption, read_bytes

Body = dict[str, Any]  # Any: JSON
Function = TypeVar("Function", bound=Callable[..., Any])  # Any: a command's own parameters

# How a write is to be done is said beside its document: none of these is part of the request.
_BESIDE = {"body", "dry_run", "if_revision", "idempotency_key"}


def takes_body(function: Function) -> Function:
    """Give a writer `--input`, as the parameter `body`: the document, or None where there was none."""
    return click.option(
        "--input", "body", callback=_read, metavar="FILE", help="The whole request as JSON: FILE, or - for stdin."
    )(function)


def request_of(body: Body | None, words: Body, fields: Iterable[str]) -> Body:
    """Return the request that a command was given: its document, or its words and options by the names of the gateway.

    Errors (exit 2): both were given, or a field that is none of `fields`.
    """
    if body is None:
        return words
    context = click.get_current_context()
    for param in context.command.params:
        if isinstance(param, GlobalOption) or param.name in _BESIDE:
            continue
        if context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--input is the whole request, and {param.opts[0]} was given too. Give one of them."
            )
    known = set(fields)
    if unknown := sorted(body.keys() - known):
        there_are = ", ".join(sorted(known))
        raise click.UsageError(f"The document has no field {unknown[0]!r} to offer; there are {there_are}.")
    return body


def needed(words: Body, *names: str) -> None:
    """Refuse a request that lacks one of its fields (exit 2)."""
    for name in names:
        if words.get(name) in (None, (), []):
            raise click.UsageError(f"Missing {name}: give it, or a document with --input.")


def _read(ctx: click.Context, param: click.Parameter, value: str | None) -> Body | None:
    raw = read_bytes(ctx, param, value)
    if raw is None:
        return None
    try:
        document: object = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter("the document is not JSON in UTF-8.", ctx, param) from error
    if not isinstance(document, dict):
        raise click.BadParameter("the document is JSON, and no object.", ctx, param)
    return cast(Body, document)
