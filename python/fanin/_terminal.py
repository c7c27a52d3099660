"""Progress in a terminal or a notebook, without any other package."""

import html
import sys
import time
from collections.abc import Callable
from typing import Any

from fanin._arguments import wrong

#: Is called with what is done and what there is to do.
Progress = Callable[[float, float], object]

_WIDTH = 40
#: Short work shows no bar.
_SILENT_SECONDS = 0.5
_REDRAW_SECONDS = 0.1


def bar(wanted: bool | Progress | None, label: str) -> "tuple[Progress | None, Callable[[], None]]":
    """Return the function to call with progress, and the one to call at the end.

    `None` shows a bar where a person looks: in a terminal or a notebook. A function is called as it is.
    """
    if callable(wanted):
        return wanted, _nothing
    if wanted is not None and not isinstance(wanted, bool):
        raise wrong("progress", "True, False, None, or a function of two arguments", wanted)
    if wanted is False or (wanted is None and not (_is_notebook() or sys.stderr.isatty())):
        return None, _nothing
    shown = _Notebook(label) if _is_notebook() else _Terminal(label)
    return shown.update, shown.close


def _nothing() -> None:
    """End what has no bar."""


def _is_notebook() -> bool:
    """Return whether this runs in a kernel of Jupyter; IPython is not imported for the question."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class _Bar:
    """A bar that is drawn again at most ten times a second, and not at all for short work.

    Its last state stays: the end and the time that it took, or the share at which the work was stopped.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._start = self._drawn = time.monotonic()
        self._share = 0.0
        self._is_shown = False

    def update(self, done: float, of: float) -> None:
        if of <= 0:
            return
        self._share = min(1.0, done / of)
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS or now - self._start < _SILENT_SECONDS:
            return
        self._drawn, self._is_shown = now, True
        left = (now - self._start) * (1 - self._share) / self._share if self._share > 0 else None
        self.draw(self._share, _percent(self._share) + ("" if left is None else f", {left:.0f} s left"))

    def close(self) -> None:
        """Draw the last state; nothing where no bar was shown."""
        if self._is_shown:
            how = "" if self._share >= 1.0 else "stopped at "
            self.draw(self._share, f"{how}{_percent(self._share)}, {time.monotonic() - self._start:.1f} s")
            self.end()

    def draw(self, share: float, words: str) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Leave the bar: what follows stands below it."""


def _percent(share: float) -> str:
    """Return a share in percent, which is 100 at the end only."""
    return f"{int(share * 100)}%"


class _Terminal(_Bar):
    def draw(self, share: float, words: str) -> None:
        full = round(share * _WIDTH)
        sys.stderr.write(f"\r\x1b[K{self.label} {'█' * full}{'░' * (_WIDTH - full)} {words}")
        sys.stderr.flush()

    def end(self) -> None:
        sys.stderr.write("\n")
        sys.stderr.flush()


class _Notebook(_Bar):
    def __init__(self, label: str) -> None:
        super().__init__(label)
        self._handle: Any = None

    def draw(self, share: float, words: str) -> None:
        from importlib import import_module

        display = import_module("IPython.display")
        label = html.escape(self.label)
        shown = display.HTML(f'{label} <progress value="{share:.3f}" max="1"></progress> {words}')
        if self._handle is None:
            self._handle = display.display(shown, display_id=True)
        else:
            self._handle.update(shown)
