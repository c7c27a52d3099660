"""The result figures of the papers, drawn from our own runs; `python -m fanin.figures` does the same.

>>> from fanin import figures
>>> [figure.name for figure in figures.chosen(["m21tcp-4"])]
['m21tcp-4']
>>> len(figures.FIGURES) > 40
True
"""

import os
from collections.abc import Sequence
from pathlib import Path

from fanin._arguments import check_type, checked_path
from fanin.figures.engine import Drawn, Store, draw_all
from fanin.figures.spec import FULL, GALLERY, PAPERS, TINY, Figure, Mark, Panel, Quality, Run, Series, Undrawn
from fanin.figures.table import FIGURES, UNDRAWN, chosen

__all__ = [
    "FIGURES",
    "FULL",
    "GALLERY",
    "PAPERS",
    "TINY",
    "UNDRAWN",
    "Drawn",
    "Figure",
    "Mark",
    "Panel",
    "Quality",
    "Run",
    "Series",
    "Store",
    "Undrawn",
    "chosen",
    "draw",
]


def draw(
    *names: str,
    out: str | os.PathLike[str] = "out/figures",
    quality: Quality = GALLERY,
    is_quiet: bool = False,
) -> Sequence[Drawn]:
    """Draw figures by their names, such as `thesis-4.3`, or all of a paper; all there are without a name.

    Runs that are stored in `out` are not simulated again. Raise `ValueError` for a name that is no figure.
    """
    folder = Path(checked_path("out", out))
    check_type("quality", quality, Quality, "figures.GALLERY or figures.FULL")
    store = Store(folder / f"runs-{quality.name}", quality)
    return draw_all(chosen(list(names)), store, folder, is_quiet=is_quiet)
