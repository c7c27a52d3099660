"""How panels are drawn: one style for all figures, with colours that the colour-blind can distinguish."""

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fanin.figures.measure import Measured, quantile
from fanin.figures.spec import Figure, Panel, Quality, Run
from fanin.plot import _COLOURS as COLOURS

__all__ = ["COLOURS", "MARKERS", "Draws", "boxes", "distribution", "histogram", "save", "traces", "values"]

Look = Callable[[Run], Measured]
Draws = Callable[[Any, Panel, Look], None]

MARKERS = "osD^vPX"
_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 7.5,
    "legend.framealpha": 0.85,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    # Texts stay texts: small files, and words that can be found.
    "svg.fonttype": "none",
    # The same picture for the same numbers.
    "svg.hashsalt": "fanin",
}
_WIDTH_INCHES = 4.1
_HEIGHT_INCHES = 3.1
# A page is as wide as two panels: their words are as large as its own.
_COLUMNS_MAX = 2
_PNG_DPI = 130
_LEGEND_INSIDE_MAX = 3
#: The least fraction on a logarithmic axis of a histogram: one event in two thousand.
_FRACTION_MIN = 5e-4


def save(figure: Figure, look: Look, folder: Path, quality: Quality) -> list[Path]:
    """Draw a figure and write it as SVG and PNG; return the paths."""
    try:
        matplotlib = import_module("matplotlib")
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'fanin[plot]'") from error
    canvas = import_module("matplotlib.figure")
    panels = figure.of(quality)
    paths = [folder / f"{figure.name}{ending}" for ending in (".svg", ".png")]
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
        columns = min(len(panels), _COLUMNS_MAX)
        rows = -(-len(panels) // columns)
        size = (_WIDTH_INCHES * max(columns, 1.3), _HEIGHT_INCHES * rows)
        picture = canvas.Figure(figsize=size, layout="constrained")
        all_axes = picture.subplots(rows, columns, squeeze=False).flat
        for ax in all_axes[len(panels) :]:
            ax.remove()
        for place, (ax, panel) in enumerate(zip(all_axes, panels, strict=False)):
            panel.draw(ax, panel, look)
            letter = f"({chr(ord('a') + place)}) " if len(panels) > 1 else ""
            _finish(ax, panel, letter)
        _legend(picture)
        picture.savefig(paths[0], metadata={"Date": None, "Creator": None})
        picture.savefig(paths[1], dpi=_PNG_DPI, metadata={"Software": None})
    # Matplotlib ends some lines with a space.
    text = "\n".join(line.rstrip() for line in paths[0].read_text().splitlines())
    paths[0].write_text(text + "\n")
    return paths


def _finish(ax: Any, panel: Panel, letter: str) -> None:
    """Write titles, scales and marks."""
    ax.set(title=letter + panel.title, xlabel=panel.x, ylabel=panel.y)
    if "x" in panel.log:
        ax.set_xscale("log")
        _log_ticks(ax.xaxis, *ax.get_xlim())
        _few_ticks(ax.xaxis, panel)
    if "y" in panel.log:
        ax.set_yscale("log")
        if panel.draw is histogram:
            # Fractions are at most one. An axis of its own for each panel would hide how they differ.
            ax.set_ylim(_FRACTION_MIN, 1)
        _log_ticks(ax.yaxis, *ax.get_ylim())
    elif panel.y_range is None:
        ax.set_ylim(bottom=0)
    if panel.x_range is not None:
        ax.set_xlim(*panel.x_range)
    if panel.y_range is not None:
        ax.set_ylim(*panel.y_range)
    for mark in panel.marks:
        line = ax.axhline if mark.axis == "y" else ax.axvline
        line(mark.value, color="#555555", linewidth=0.9, linestyle=(0, (1, 1.5)), label=mark.label, zorder=1)


def _legend(picture: Any) -> None:
    """Write one legend for all panels: inside where it is short, else below, where it hides no line."""
    by_label: dict[str, Any] = {}
    for ax in picture.axes:
        handles, labels = ax.get_legend_handles_labels()
        by_label.update(zip(labels, handles, strict=True))
    if not by_label:
        return
    if len(picture.axes) == 1 and len(by_label) <= _LEGEND_INSIDE_MAX:
        picture.axes[0].legend(by_label.values(), by_label.keys(), loc="best")
    else:
        across = min(len(picture.axes), _COLUMNS_MAX)
        columns = 2 * across if len(by_label) > _LEGEND_INSIDE_MAX else len(by_label)
        columns = min(columns, len(by_label), 3 * across)
        picture.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=columns)


def _log_ticks(axis: Any, low: float, high: float) -> None:
    """Write numbers as they are; over several decades 1, 10 and 100 suffice."""
    ticker = import_module("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter(_plain)
    axis.set_minor_formatter(ticker.NullFormatter())


def _plain(value: float, _place: object = None) -> str:
    return f"{value:g}"


def _few_ticks(axis: Any, panel: Panel) -> None:
    """Put a tick at each x of the first series, as far as they have room."""
    xs = sorted({x for one in panel.series for x, _ in one.runs})
    if panel.draw is not values or len(xs) < 2 or xs[0] <= 0:
        return
    gap = (math.log(xs[-1]) - math.log(xs[0])) / 8
    kept = [xs[0]]
    for x in xs[1:]:
        if math.log(x) - math.log(kept[-1]) >= gap:
            kept.append(x)
    axis.set_major_locator(import_module("matplotlib.ticker").FixedLocator(kept))
    axis.set_minor_locator(import_module("matplotlib.ticker").NullLocator())


def _look_of(panel: Panel, place: int) -> dict[str, Any]:
    """Return colour and line of a series."""
    one = panel.series[place]
    number = place if one.colour is None else one.colour
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": one.line}


def _layered(panel: Panel, place: int) -> dict[str, Any]:
    """Return colour and line where series may cover each other: first ones wide, later ones broken."""
    lines = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
    wide = max(1.2, 2.6 - 0.6 * place)
    return {**_look_of(panel, place), "linestyle": lines[place % len(lines)], "linewidth": wide}


def values(ax: Any, panel: Panel, look: Look) -> None:
    """Draw a value of each run against x: by default the mean collection time."""
    value = panel.value or (lambda measured: measured.mean_ms)
    for place, one in enumerate(panel.series):
        points = [(x, value(look(run))) for x, run in one.runs]
        points = [(x, y) for x, y in points if math.isfinite(y) and (y > 0 or "y" not in panel.log)]
        style = _look_of(panel, place)
        number = place if one.colour is None else one.colour
        marker = MARKERS[number % len(MARKERS)]
        ax.plot([x for x, _ in points], [y for _, y in points], marker=marker, label=one.label, **style)
    if panel.has_ideal:
        _ideal(ax, panel, look)


def _ideal(ax: Any, panel: Panel, look: Look) -> None:
    ideals = [(x, look(run).ideal_ms) for x, run in panel.series[0].runs]
    ideals = [(x, ideal) for x, ideal in ideals if ideal > 0]
    if ideals:
        label = "ideal"
        ax.plot(
            *zip(*ideals, strict=True), color="#888888", linestyle="--", linewidth=1, label=label, zorder=1
        )


def boxes(ax: Any, panel: Panel, look: Look) -> None:
    """Draw boxes: quartiles, whiskers at the 1st and 99th percentile, bullets at the mean."""
    (one,) = panel.series
    kept = [(x, look(run)) for x, run in one.runs if look(run).times_ms]
    statistics = [
        {
            "label": f"{x:g}",
            "mean": measured.mean_ms,
            "med": measured.median_ms,
            "q1": quantile(measured.times_ms, 0.25),
            "q3": quantile(measured.times_ms, 0.75),
            "whislo": measured.p1_ms,
            "whishi": measured.p99_ms,
        }
        for x, measured in kept
    ]
    colour = COLOURS[0]
    if statistics:
        ax.bxp(
            statistics,
            positions=range(len(kept)),
            showfliers=False,
            showmeans=True,
            widths=0.6,
            boxprops={"color": colour},
            whiskerprops={"color": colour},
            capprops={"color": colour},
            medianprops={"color": colour},
            meanprops={
                "marker": "o",
                "markerfacecolor": COLOURS[1],
                "markeredgecolor": COLOURS[1],
                "markersize": 4,
            },
        )
        ax.plot([], [], "o", color=COLOURS[1], markersize=4, label="mean")
        ideals = [measured.own_ideal_ms for _, measured in kept]
        ax.plot(range(len(kept)), ideals, "--", color="#888888", linewidth=1, label="events' mean ideal")
        ax.tick_params(axis="x", rotation=60)


def histogram(ax: Any, panel: Panel, look: Look) -> None:
    """Draw which fraction of the events falls into each bin of time."""
    high = panel.x_range[1] if panel.x_range else 1000.0
    edges = [place * panel.bin for place in range(int(high / panel.bin) + 1)]
    for place, one in enumerate(panel.series):
        times = [time for _, run in one.runs for time in look(run).times_ms]
        if not times:
            continue
        counts = [0.0] * len(edges)
        for time in times:
            # Times beyond the axis stand in the last bin.
            counts[min(int(time / panel.bin), len(counts) - 2)] += 1 / len(times)
        ax.stairs(
            counts[:-1],
            edges,
            label=one.label,
            fill=place == 0,
            alpha=0.45 if place == 0 else 1.0,
            **_look_of(panel, place),
        )


def distribution(ax: Any, panel: Panel, look: Look) -> None:
    """Draw which share of the events took at most which time."""
    for place, one in enumerate(panel.series):
        times = sorted(time for _, run in one.runs for time in look(run).times_ms)
        if not times:
            continue
        # A thousand steps are as many as can be seen.
        step = max(1, len(times) // 1000)
        xs = [*times[::step], times[-1]]
        ys = [*((at + 1) / len(times) for at in range(0, len(times), step)), 1.0]
        ax.step(xs, ys, where="post", label=one.label, **_layered(panel, place))


def traces(ax: Any, panel: Panel, look: Look) -> None:
    """Draw the points over time that a panel takes from each run."""
    assert panel.trace is not None, "a panel of traces names the points"
    for place, one in enumerate(panel.series):
        xs: Sequence[float]
        for _, run in one.runs:
            xs, ys = panel.trace(look(run))
            if xs:
                ax.step(xs, ys, where="post", label=one.label, **_layered(panel, place))
