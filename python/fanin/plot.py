"""Figures of one result by matplotlib; use them through `Result.plot`."""

from collections import defaultdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fanin.result import Result

_PS_PER_MS = 1e9
_PS_PER_S = 1e12
# Okabe and Ito's colours, which the colour-blind can distinguish.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_GREY = "#bbbbbb"
# More points than these are drawn small.
_MANY = 200
# Of many lines so few have a name.
_NAMED = 3


def _axes(ax: Any) -> Any:
    """Return the axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'fanin[plot]'") from error
    return pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")[1]


class Plots:
    """The figures of a result; each takes `ax` to draw on, or makes one, and returns it."""

    def __init__(self, result: "Result") -> None:
        """Draw this result."""
        self._result = result

    def times(self, ax: Any = None) -> Any:
        """Draw which share of the measured events took at most which time, and the mean ideal."""
        times, ideals = self._result.measured_ms()
        if not times:
            raise ValueError("no event was collected")
        times.sort()
        ax = _axes(ax)
        shares = [place / len(times) for place in range(len(times) + 1)]
        ax.step([times[0], *times], shares, where="post", color=_COLOURS[0], label=self._result.name)
        if ideals:
            ax.axvline(sum(ideals) / len(ideals), color=_COLOURS[1], linestyle="--", label="ideal")
        ax.set(xlabel="collection time (ms)", ylabel=f"share of the {self._result.unit}s", ylim=(0, 1.02))
        ax.legend()
        return ax

    def timeline(self, ax: Any = None) -> Any:
        """Draw the collection time of each event or request over the time at which it began."""
        events = self._result.events
        pairs = [
            (assigned / _PS_PER_S, time / _PS_PER_MS)
            for assigned, time in zip(events["assigned_ps"], events["collection_time_ps"], strict=True)
            if time is not None
        ]
        if not pairs:
            raise ValueError("no event was collected")
        ax = _axes(ax)
        xs, ys = zip(*pairs, strict=True)
        ax.plot(xs, ys, ".", markersize=3 if len(xs) > _MANY else 6, color=_COLOURS[0])
        ax.set(xlabel="assigned (s)", ylabel="collection time (ms)", ylim=(0, 1.05 * max(ys)))
        begin = self._result.summary.get("measured_ps", {}).get("from", 0)
        if begin > 0:
            ax.axvspan(0, begin / _PS_PER_S, color=_GREY, alpha=0.3, linewidth=0, label="warm-up")
            ax.legend()
        return ax

    def queues(self, ax: Any = None) -> Any:
        """Draw the occupancy of the queues that ``record.queues`` names."""
        table = self._result.queues
        rows = zip(table["queue"], table["time_ps"], table["queue_bytes"], strict=True)
        lines = _lines((name, time / _PS_PER_S, size / 1e3) for name, time, size in rows)
        if not lines:
            raise ValueError('no queue was watched: set record.queues, for example to ["tor->collector:*"]')
        return _draw(_axes(ax), lines, "time (s)", "queue (kB)", "post")

    def windows(self, ax: Any = None) -> Any:
        """Draw the congestion windows of the connections that ``record.windows`` names."""
        table = self._result.windows
        rows = zip(table["flow"], table["time_ps"], table["cwnd_bytes"], strict=True)
        lines = _lines((f"connection {flow}", time / _PS_PER_S, size / 1e3) for flow, time, size in rows)
        if not lines:
            raise ValueError("no connection was watched: set record.windows, for example to [0]")
        return _draw(_axes(ax), lines, "time (s)", "congestion window (kB)", "post")


def _lines(rows: Any) -> dict[str, tuple[list[float], list[float]]]:
    """Return the points of each name."""
    lines: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for name, x, y in rows:
        lines[name][0].append(x)
        lines[name][1].append(y)
    return dict(lines)


def _draw(ax: Any, lines: dict[str, tuple[list[float], list[float]]], x: str, y: str, where: str) -> Any:
    # The highest lines have colours and names; the others stand behind them in grey.
    highest = sorted(lines, key=lambda name: -sum(lines[name][1]) / len(lines[name][1]))
    named = highest if len(lines) <= len(_COLOURS) else highest[:_NAMED]
    others = [name for name in lines if name not in named]
    for place, name in enumerate(others):
        label = f"{len(others)} others" if place == 0 else None
        ax.step(*lines[name], where=where, color=_GREY, label=label, linewidth=0.7)
    for place, name in enumerate(name for name in lines if name in named):
        ax.step(*lines[name], where=where, color=_COLOURS[place], label=name, linewidth=1)
    ax.set(xlabel=x, ylabel=y, ylim=(0, None))
    ax.legend()
    return ax
