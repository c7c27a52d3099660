"""The table of figures: every result figure of the five papers in their order, then those of techniques."""

from collections.abc import Sequence

from fanin._arguments import checked_texts
from fanin.figures import icc15, lcn15, m21tcp, multihost, techniques, thesis4, thesis5, thesis6
from fanin.figures.spec import Figure, Undrawn

__all__ = ["FIGURES", "UNDRAWN", "chosen"]

_TABLES = (thesis4, thesis5, thesis6, icc15, lcn15, multihost, m21tcp, techniques)
FIGURES: tuple[Figure, ...] = tuple(figure for table in _TABLES for figure in table.FIGURES)
UNDRAWN: tuple[Undrawn, ...] = tuple(one for table in (icc15, lcn15) for one in table.UNDRAWN)


def chosen(names: str | Sequence[str]) -> list[Figure]:
    """Return the figures of a name or of some, which are figures or papers; all of them for none.

    Raise `ValueError` for a name that is neither.
    """
    names = checked_texts("names", names, 'a figure or a paper, such as "thesis-4.3"')
    if not names:
        return list(FIGURES)
    for name in names:
        if not any(name in (figure.name, figure.paper) for figure in FIGURES):
            undrawn = next((one for one in UNDRAWN if one.name == name), None)
            why = f"is not drawn: {undrawn.reason}" if undrawn else "is no figure; `--list` names them"
            raise ValueError(f"{name} {why}")
    return [figure for figure in FIGURES if figure.name in names or figure.paper in names]
