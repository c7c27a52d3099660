"""Progress in a terminal or a notebook, without any other package."""

import sys
import time
from collections.abc import Callable
from typing import Any

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
    if wanted is False or (wanted is None and not (_is_notebook() or sys.stderr.isatty())):
        return None, _nothing
    shown = _Notebook(label) if _is_notebook() else _Terminal(label)
    return shown.update, shown.close


def _nothing() -> None:
    """End what has no bar."""


def _is_notebook() -> bool:
    """Tell whether this runs in a kernel of Jupyter; IPython is not imported for the question."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class _Bar:
    """A bar that is drawn again at most ten times a second, and not at all for short work."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._start = self._drawn = time.monotonic()
        self._is_shown = False

    def update(self, done: float, of: float) -> None:
        now = time.monotonic()
        if now - self._drawn < _REDRAW_SECONDS or now - self._start < _SILENT_SECONDS or of <= 0:
            return
        self._drawn, self._is_shown = now, True
        share = min(1.0, done / of)
        left = (now - self._start) * (1 - share) / share if share > 0 else None
        self.draw(share, "" if left is None else f", {left:.0f} s left")

    def close(self) -> None:
        if self._is_shown:
            self.clear()

    def draw(self, share: float, left: str) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        raise NotImplementedError


class _Terminal(_Bar):
    def draw(self, share: float, left: str) -> None:
        full = round(share * _WIDTH)
        sys.stderr.write(f"\r\x1b[K{self.label} {'█' * full}{'░' * (_WIDTH - full)} {share:.0%}{left}")
        sys.stderr.flush()

    def clear(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Notebook(_Bar):
    def __init__(self, label: str) -> None:
        super().__init__(label)
        self._handle: Any = None

    def draw(self, share: float, left: str) -> None:
        from importlib import import_module

        display = import_module("IPython.display")
        html = display.HTML(
            f'{self.label} <progress value="{share:.3f}" max="1"></progress> {share:.0%}{left}'
        )
        if self._handle is None:
            self._handle = display.display(html, display_id=True)
        else:
            self._handle.update(html)

    def clear(self) -> None:
        from importlib import import_module

        if self._handle is not None:
            self._handle.update(import_module("IPython.display").HTML(""))
