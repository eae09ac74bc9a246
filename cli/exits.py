"""From what went wrong to a paragraph on stderr and the exit of the registry.

This is the edge: every error ends here, and none of them becomes exit 0. It never prints the message of an error
that it does not know, because such a message may quote stored text.
"""

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, TextIO

import click

from cli.output import UnwrittenError, writing
from cli.text import inert, inert_json

DONE = 0
UNEXPECTED = 1
USAGE = 2
UNAVAILABLE = 7
PARTIAL = 9
INTERRUPTED = 130
PIPE_CLOSED = 141  # 128 + SIGPIPE: what a shell reports of any program whose reader has left

_MACHINE = ("json", "jsonl", "yaml")  # a JSON document is YAML, too


def run(command: click.Command, args: Sequence[str]) -> int:
    """Run a command line and return its exit; whatever it raises is reported on stderr."""
    try:
        return _guarded(command, args)
    except BrokenPipeError:
        _drop(sys.stdout, sys.stderr)
        return PIPE_CLOSED


def _guarded(command: click.Command, args: Sequence[str]) -> int:
    try:
        if sys.stdout is None:  # closed before we began: nothing is done that could not be answered for
            raise UnwrittenError("stdout is closed")
        return _invoke(command, args)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # the door: whatever it is, it is said and has an exit
        if "--traceback" in args and not isinstance(error, click.ClickException | UnwrittenError):
            traceback.print_exception(error)
        return _report(error, args)


def _invoke(command: click.Command, args: Sequence[str]) -> int:
    code = DONE
    try:
        with command.make_context("corrigenda", list(args)) as context:
            command.invoke(context)
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    with writing():
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be told
    return code


def _report(error: Exception, args: Sequence[str]) -> int:
    fault, code = _described(error, traced="--traceback" in args)
    if _wants_machine(args):
        text = inert_json(json.dumps({"schema_version": 1, **fault}, ensure_ascii=False, default=str))
    else:
        text = f"error {fault['code']}: {inert(fault['message'])}"
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")
    if isinstance(error, UnwrittenError):
        _drop(sys.stdout)
    return code


def _described(error: Exception, *, traced: bool) -> tuple[dict[str, Any], int]:  # Any: JSON
    from ledger.errors import CorrigendaError

    if isinstance(error, CorrigendaError):
        return _fault(
            error.code,
            error.message,
            retriable=error.retriable,
            retry_after_ms=error.retry_after_ms,
            details=error.details,
            trace_id=error.trace_id,
        ), error.exit_code
    if isinstance(error, click.ClickException):
        return _fault("VALIDATION_FAILED", _usage(error)), USAGE
    if isinstance(error, UnwrittenError):
        return _fault("UNEXPECTED", f"the answer could not be written: {error}"), UNEXPECTED
    hint = "" if traced else " Run again with --traceback."
    return _fault("UNEXPECTED", f"{type(error).__name__} {_place(error)}.{hint}"), UNEXPECTED


def _fault(
    code: str,
    message: str,
    *,
    retriable: bool = False,
    retry_after_ms: int | None = None,
    details: dict[str, Any] | None = None,  # Any: JSON, as the code's documentation names it
    trace_id: str | None = None,
) -> dict[str, Any]:  # Any: JSON
    return {
        "code": code,
        "message": message,
        "retriable": retriable,
        "retry_after_ms": retry_after_ms,
        "details": details or {},
        "trace_id": trace_id,
    }


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} (see {context.command_path} --help)" if context else message


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "at an unknown place"


def _wants_machine(args: Sequence[str]) -> bool:
    """Read `-o` from the bare words: a command line that could not be parsed is reported in its format too."""
    before, wanted = "", False
    for word in args:
        if word == "--":
            break
        if before in ("-o", "--output"):
            wanted = word in _MACHINE
        elif word.startswith("--output="):
            wanted = word.removeprefix("--output=") in _MACHINE
        elif word.startswith("-o") and not word.startswith("--"):
            wanted = word.removeprefix("-o").removeprefix("=") in _MACHINE
        before = word
    return wanted


def _drop(*streams: TextIO | None) -> None:
    """Send the rest nowhere, or the interpreter complains of what it cannot write when it flushes at its end."""
    for stream in streams:
        try:
            if stream is not None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):  # a stream without a file behind it
            continue
