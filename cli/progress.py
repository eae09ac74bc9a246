"""A bar with rate and time left, on stderr, beside work that takes long.

On a terminal it redraws one line; elsewhere, and only when `--progress` asks for it, it writes a line now and
then. It never touches stdout.
"""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.context import Session

_BAR_COLUMNS = 24
_REDRAW_S = 0.1
_LINE_S = 5.0


@dataclass(slots=True)
class Meter:
    """How far some work has got, phase by phase; a count that goes back, or 0 of another total, begins the next phase.

    `show` is cheap enough to be called for every item.
    """

    phases: list[tuple[str, str]]
    visible: bool
    redraws: bool
    began: float = field(default_factory=time.monotonic)
    shown: float = float("-inf")
    drawn: tuple[int, int | None] | None = None
    told: bool = False
    latest: tuple[int, int | None] = (0, None)

    def show(self, done: int, total: int | None) -> None:
        """Note that `done` of `total` are done, and draw that if the last drawing is long enough ago."""
        now = time.monotonic()
        begun = done < self.latest[0] or (done == 0 == self.latest[0] and self.told and total != self.latest[1])
        self.told = True
        if begun and len(self.phases) > 1:
            self._next_phase(now)
        self.latest = (done, total)
        if self.visible and now - self.shown >= (_REDRAW_S if self.redraws else _LINE_S):
            self.shown = now
            self._draw(now)

    def close(self) -> None:
        """Draw the last state, so that what stays on the screen is true; a line that says it is not repeated."""
        if self.drawn is None:
            return
        if self.redraws or self.drawn != self.latest:
            self._draw(time.monotonic())
        sys.stderr.write("\n" if self.redraws else "")

    def _next_phase(self, now: float) -> None:
        self.close()
        self.phases = self.phases[1:]
        self.began, self.shown, self.drawn = now, float("-inf"), None

    def _draw(self, now: float) -> None:
        self.drawn = self.latest
        text = line(*self.phases[0], *self.latest, elapsed_s=now - self.began)
        sys.stderr.write(f"\r\x1b[K{text}" if self.redraws else text + "\n")
        sys.stderr.flush()


@contextmanager
def metered(session: "Session", *phases: tuple[str, str]) -> Generator[Meter, None, None]:
    """Give a meter for phases (what is done, to what), and close its line at the end.

    It is seen on a terminal, or where `--progress` asks for it.
    """
    terminal = sys.stderr.isatty()
    visible = terminal and not session.quiet if session.progress is None else session.progress
    meter = Meter(phases=list(phases), visible=visible, redraws=terminal)
    try:
        yield meter
    finally:
        meter.close()


def line(verb: str, unit: str, done: int, total: int | None, *, elapsed_s: float) -> str:
    """Return one line about work in progress: a bar and the time left where the total is known, else a count."""
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    if not total:
        return f"{verb} {done:,} {unit}  {rate:,.0f}/s"
    filled = min(_BAR_COLUMNS, _BAR_COLUMNS * done // total)
    left = f"{_span((total - done) / rate)} left" if rate and done < total else _span(elapsed_s)
    bar = "█" * filled + "░" * (_BAR_COLUMNS - filled)
    return f"{verb} {bar} {done:,}/{total:,} {unit}  {rate:,.0f}/s  {left}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
