"""The block that a prompt is given: past corrections, and learnings if they are asked for, in agentium's form.

What a text says is data here: nothing in it can close the block, begin another line or turn the reading direction.
This module never looks anything up, and never cuts a text: a line that does not fit is left out whole.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

CORRECTIONS_HEADER = "Past corrections (avoid repeating these mistakes):"
LEARNINGS_HEADER = "Learnings:"
CAVEAT = "Unverified learnings were vouched for by nobody: check them before relying on them."
BYTES_PER_TOKEN = 3

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': '\\"'})
# Control characters (C0, C1, tags, annotations), line and paragraph separators, and whatever turns the direction.
_BREAKS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]+"
)


class PastCorrection(Struct, frozen=True, kw_only=True):
    """What a line says of one correction."""

    identifier: str
    field: str | None
    original_value: str
    corrected_value: str
    entity_key: str | None
    reason: str | None
    confirmed: bool


class Learned(Struct, frozen=True, kw_only=True):
    """What a line says of one memory."""

    identifier: str
    content: str
    verified: bool


class Block(Struct, frozen=True, kw_only=True):
    """A block that is ready for a prompt, and what is in it; the text is empty if nothing is."""

    text: str
    corrections: tuple[str, ...]
    learnings: tuple[str, ...]
    truncated: bool


def estimated_tokens(text: str) -> int:
    """Return how many tokens a text may take at most, where no tokenizer is at hand: one for each 3 bytes of UTF-8."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def neutral(text: str) -> str:
    """Return a text that stays inside its place: `& < >` as entities, `"` escaped, whatever breaks a line as a space.

    So is what turns the reading direction or is invisible by design; a run of these becomes one space.
    """
    return _BREAKS.sub(" ", text).translate(_ENTITIES)


def render(
    corrections: Sequence[PastCorrection],
    learnings: Sequence[Learned] = (),
    *,
    budget: int | None = None,
    count: Callable[[str], int] = estimated_tokens,
) -> Block:
    """Return the block of what is given, best first, in at most `budget` tokens as `count` counts them.

    Corrections come first. What does not fit is left out, and the block says that it is truncated; if nothing fits
    between the delimiters, the text is empty.
    """
    room = _Room(budget, count)
    frame = _frame(bool(corrections))
    said = [item for item in corrections if room.take(_correction_line(item), *frame, CORRECTIONS_HEADER)]
    learned = [
        item
        for item in learnings
        if room.take(_learning_line(item), *frame, LEARNINGS_HEADER, *(() if item.verified else (CAVEAT,)))
    ]
    lines = [
        *([CORRECTIONS_HEADER, *map(_correction_line, said)] if said else ()),
        *([LEARNINGS_HEADER, *map(_learning_line, learned)] if learned else ()),
        *(() if all(item.verified for item in learned) else (CAVEAT,)),
    ]
    opening, closing = _frame(bool(said))
    return Block(
        text="\n".join([opening, *lines, closing]) if lines else "",
        corrections=tuple(item.identifier for item in said),
        learnings=tuple(item.identifier for item in learned),
        truncated=len(said) + len(learned) < len(corrections) + len(learnings),
    )


class _Room:
    """What is left of a budget; everything fits where there is none."""

    def __init__(self, budget: int | None, count: Callable[[str], int]) -> None:
        self._left = budget
        self._count = count
        self._shared: set[str] = set()

    def take(self, line: str, *shared: str) -> bool:
        """Report whether a line fits with those that it needs around it, which cost only once; if so, take the room."""
        fresh = [other for other in shared if other not in self._shared]
        if self._left is not None:
            cost = sum(self._count(one + "\n") for one in (line, *fresh))
            if cost > self._left:
                return False
            self._left -= cost
        self._shared.update(fresh)
        return True


def _frame(corrections: bool) -> tuple[str, str]:
    section = "corrections" if corrections else "learnings"
    return f'<memory section="{section}" scope="current_user">', "</memory>"


def _correction_line(item: PastCorrection) -> str:
    mark = "" if item.confirmed else "(unconfirmed) "
    field = f"{neutral(item.field)}: " if item.field else ""
    entity = f" [{neutral(item.entity_key)}]" if item.entity_key else ""
    reason = f" — {neutral(item.reason)}" if item.reason else ""
    said = f'"{neutral(item.original_value)}" was corrected to "{neutral(item.corrected_value)}"'
    return f"- {mark}{field}{said}{entity}{reason}"


def _learning_line(item: Learned) -> str:
    return f"- [{'verified' if item.verified else 'unverified'}] {neutral(item.content)}"
