"""Loads the named blocks of a floor's `.sql` files. No other module holds SQL.

A block begins with `-- name: verb_object` and ends where the next one begins.
"""

import re
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load(package: str, file: str = "queries.sql") -> dict[str, LiteralString]:
    """Return the blocks of a file of `package` by name. A name used twice is a ValueError."""
    source = files(package).joinpath(file).read_text(encoding="utf-8")
    _, *parts = _NAME.split(source)
    names, bodies = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise ValueError(f"{package}/{file} names a block twice")
    # The text is a file of this distribution, never anybody's input, hence a literal in all but name.
    return {name: cast(LiteralString, body.strip()) for name, body in zip(names, bodies, strict=True)}
