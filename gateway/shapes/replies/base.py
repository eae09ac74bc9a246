"""What every answer is."""

import msgspec


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every answer."""
