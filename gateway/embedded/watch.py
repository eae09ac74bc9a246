"""The script that becomes the watcher: `python -I -S watch.py STATE`, its order as JSON on stdin.

It runs isolated, without site-packages, so the package it belongs to cannot be imported: two bare packages
stand in for `gateway` and `gateway.embedded`, and none of their `__init__` runs. Must never import anything
but the standard library and the three modules named in `watcher`.
"""

import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))


def stand_in(name: str, folder: str) -> None:
    """Make `name` importable as a package of `folder` without running its `__init__`."""
    package = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package


if __name__ == "__main__":
    stand_in("gateway", os.path.dirname(HERE))
    stand_in("gateway.embedded", HERE)
    from gateway.embedded.watcher import main

    main()
