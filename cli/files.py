"""The one kind of file that a command writes: whole or not at all, in place of what was read there before."""

import os
import secrets

import click


def read_earlier(path: str) -> bytes | None:
    """Return what lies at a path that is to be written, or None if nothing does. A folder has to be there."""
    try:
        with open(path, "rb") as file:
            return file.read(1024 * 1024)
    except (FileNotFoundError, NotADirectoryError) as error:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            said = f"cannot write {path!r}: there is no folder {folder}."
            raise click.BadParameter(said, param_hint="--out") from error
        return None
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error


def replace(path: str, raw: bytes) -> None:
    """Put bytes in a file at once: a reader, or a crash, finds the old bytes or the new ones."""
    aside = f"{path}.{secrets.token_hex(8)}"
    try:
        with open(aside, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except (OSError, ValueError) as error:
        if os.path.exists(aside):
            os.unlink(aside)
        raise _refused(path, error) from error


def _refused(path: str, error: OSError | ValueError) -> click.ClickException:
    why = error.strerror if isinstance(error, OSError) else "that is no path"
    return click.BadParameter(f"cannot write the file {path!r}: {why}.", param_hint="--out")
