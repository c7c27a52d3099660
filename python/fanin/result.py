"""Results: of a simulation just made, or of a folder that the command wrote."""

import html
import itertools
import json
import os
import re
import tomllib
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fanin import _fanin
from fanin._arguments import checked_path
from fanin._fanin import RecordTable

if TYPE_CHECKING:
    from fanin.plot import Plots

__all__ = ["RecordTable", "Result", "RunWarning", "load"]

_PS_PER_MS = 1e9
_BINS = 40
# Names of folders in a message.
_NAMES_SHOWN = 3
_STYLE = 'font-size="11" font-family="sans-serif" fill="currentColor"'


class RunWarning(UserWarning):
    """A simulation did not end as it should."""


class Result:
    """The result of a simulation or a run: a summary, and tables.

    Tables speak the Arrow PyCapsule interface, so that ``polars.DataFrame(result.events)``,
    ``pyarrow.table(result.events)`` and ``pandas.DataFrame.from_arrow(result.events)`` work. The last one
    copies; ``pyarrow.table(result.events).to_pandas(types_mapper=pandas.ArrowDtype)`` does not. Without any
    package, ``result.events["id"]`` is a list, and iterating gives rows as dictionaries. Each column's unit
    stands in the metadata of its field, and in ``result.events.units``.
    """

    def __init__(self, loaded: _fanin.LoadedResult) -> None:
        """Take over what the compiled half of the package holds."""
        self._loaded = loaded

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures, as ``fanin sim --json -`` prints them."""
        summary: dict[str, Any] = json.loads(self._loaded.summary)
        return summary

    @property
    def name(self) -> str:
        """The name: that of the folder, or of the scenario."""
        return self._loaded.label

    @property
    def end(self) -> str:
        """How a simulation ended: `complete`, `stopped` or `stalled`; empty for a result that was loaded."""
        return self._loaded.end

    @property
    def diagnosis(self) -> str | None:
        """The hosts that wait and what they wait for, where a simulation stalled."""
        return self._loaded.diagnosis

    @property
    def scenario_toml(self) -> str | None:
        """The resolved scenario, every default written out."""
        return self._loaded.scenario

    @cached_property
    def events(self) -> RecordTable:
        """One row for each event, or for each request of a barrier workload."""
        return self._loaded.table("events")

    @cached_property
    def queues(self) -> RecordTable:
        """Samples of the queues that ``record.queues`` names."""
        return self._loaded.table("queues")

    @cached_property
    def flows(self) -> RecordTable:
        """One row for each TCP connection and direction that carried data."""
        return self._loaded.table("flows")

    @cached_property
    def windows(self) -> RecordTable:
        """The windows of the connections that ``record.windows`` names."""
        return self._loaded.table("windows")

    @cached_property
    def io(self) -> RecordTable:
        """The traffic of the events that ``record.events`` names; warn where one was not collected."""
        table = self._loaded.table("io")
        recorded = set(table["event"])
        missing = [str(event) for event in self._recorded_events() if event not in recorded]
        if missing:
            events = self.events["id"]
            known = f"the run has events 0 to {max(events)}" if events else "the run has no events"
            text = f"no traffic was recorded of {', '.join(missing)} in `record.events`: {known}"
            # Between the caller and here lies a function of functools.
            warnings.warn(text, RunWarning, stacklevel=3)
        return table

    def _recorded_events(self) -> list[int]:
        """Return the events that the scenario names for records; those of a barrier workload have none."""
        if self.scenario_toml is None or "events" not in self.summary:
            return []
        events: list[int] = tomllib.loads(self.scenario_toml).get("record", {}).get("events", [])
        return events

    @cached_property
    def drops(self) -> RecordTable:
        """New drops of the queues that ``record.queues`` names, for each sample with some."""
        queues = self.queues
        if not len(queues) and self.summary.get("network", {}).get("drops"):
            text = "no queue was watched: name those whose drops you want in `record.queues`"
            # Between the caller and here lies a function of functools.
            warnings.warn(text, RunWarning, stacklevel=3)
        names, times, counts = queues["queue"], queues["time_ps"], queues["drops"]
        rows: list[tuple[str, int, int]] = []
        before: tuple[str, int] = ("", 0)
        for name, time, count in zip(names, times, counts, strict=True):
            new = count - (before[1] if before[0] == name else 0)
            if new > 0:
                rows.append((name, time, new))
            before = (name, count)
        columns: dict[str, list[object]] = {
            "queue": [row[0] for row in rows],
            "time_ps": [row[1] for row in rows],
            "drops": [row[2] for row in rows],
        }
        return RecordTable.of_columns(columns, {"queue": "name", "time_ps": "ps", "drops": "frames"})

    @property
    def unit(self) -> str:
        """The name of a row of `events`: `request` in a barrier workload, otherwise `event`."""
        return "request" if "requests" in self.summary else "event"

    @property
    def verdict(self) -> str:
        """How it came out, in a sentence or two."""
        _, words, figures = self._loaded.headline
        text = html.unescape(re.sub(r"<[^>]*>", "", figures))
        return f"{words}. {text}".rstrip()

    def measured_ms(self) -> tuple[list[float], list[float]]:
        """Return collection times and ideals of the events that the summary counts, in milliseconds."""
        events = self.events
        span = self.summary.get("measured_ps")
        is_measured = [span is None or span["from"] <= at < span["until"] for at in events["assigned_ps"]]

        def column(name: str) -> list[float]:
            values = itertools.compress(events[name], is_measured)
            return [value / _PS_PER_MS for value in values if value is not None]

        return column("collection_time_ps"), column("ideal_ps")

    @property
    def plot(self) -> "Plots":
        """Figures of this result by matplotlib, which ``pip install fanin[plot]`` installs."""
        from fanin.plot import Plots

        return Plots(self)

    def page(self) -> str:
        """Return the page of ``fanin report``: one HTML document that opens offline."""
        return self._loaded.page()

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the files that ``fanin sim --out`` writes, and return their paths."""
        return [Path(path) for path in self._loaded.write(checked_path("folder", folder))]

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write events, ports, goodput and the latest event as a trace that https://ui.perfetto.dev opens."""
        self._loaded.write_trace(checked_path("path", path))

    def store(self, root: str | os.PathLike[str], name: str) -> bool:
        """Write the result into the folder `name` of `root`, whole or not at all; False if it was there."""
        return self._loaded.write_once(os.fspath(root), name)

    def __reduce__(self) -> NoReturn:
        """Raise: its tables may be large, and stay where they are."""
        raise TypeError(
            "a Result does not travel to another process: `fanin.sweep` leaves results in a folder that all "
            "see, and so does `result.write(folder)`, where `fanin.load(folder)` reads them"
        )

    def __repr__(self) -> str:
        """Return name and verdict."""
        return f"<fanin.Result {self.name}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """Return verdict and picture for a notebook."""
        standing, words, figures = self._loaded.headline
        colour = {"good": "#1a7f37", "bad": "#b3261e"}.get(standing, "#8a6100")
        parts = [
            '<div style="font-family: sans-serif">',
            f'<div style="border-left: 4px solid {colour}; padding-left: 0.7em">',
            f"<small>{html.escape(self.name)}</small><br/><strong>{words}.</strong> {figures}</div>",
            self._picture(),
            "</div>",
        ]
        return "".join(parts)

    def _picture(self) -> str:
        """Return a histogram of the measured times as SVG; nothing where there are none."""
        times, ideals = self.measured_ms()
        if not times:
            return ""
        return _histogram(times, sum(ideals) / len(ideals) if ideals else None, self.unit)


def _histogram(times: list[float], ideal: float | None, unit: str) -> str:
    """Draw a histogram of times in milliseconds, with the ideal as a line."""
    low = min([*times, *([] if ideal is None else [ideal])])
    high = max(times)
    if high <= low:
        high = low + max(low, 1.0) * 1e-3
    counts = [0] * _BINS
    for time in times:
        counts[min(_BINS - 1, int((time - low) / (high - low) * _BINS))] += 1
    width, height, left, base = 480, 150, 10, 125
    step = (width - 2 * left) / _BINS
    shapes = []
    for place, count in enumerate(counts):
        tall = 110 * count / max(counts)
        shapes.append(
            f'<rect x="{left + place * step:.1f}" y="{base - tall:.1f}" width="{step - 1:.1f}" '
            f'height="{tall:.1f}" fill="#0072b2"/>'
        )

    def text(x: float, anchor: str, words: str) -> str:
        return f'<text x="{x:.1f}" y="{height - 8}" text-anchor="{anchor}" {_STYLE}>{words}</text>'

    shapes += [text(left, "start", f"{low:.3g} ms"), text(width - left, "end", f"{high:.3g} ms")]
    plural = "" if len(times) == 1 else "s"
    shapes.append(text(width / 2, "middle", f"collection times of {len(times)} {unit}{plural}"))
    if ideal is not None:
        x = left + (ideal - low) / (high - low) * (width - 2 * left)
        shapes.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="2" y2="{base}" stroke="#d55e00" stroke-width="2">'
            f"<title>ideal: {ideal:.3g} ms</title></line>"
        )
        # Above the bars, on the side where there is room.
        at, anchor = (x + 4, "start") if x < width / 2 else (x - 4, "end")
        shapes.append(f'<text x="{at:.1f}" y="10" text-anchor="{anchor}" {_STYLE}>ideal</text>')
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(shapes)}</svg>'


def load(path: str | os.PathLike[str]) -> Result:
    """Load what ``--out`` of the command wrote, or a summary alone; tables are read when they are asked for.

    Raise `OSError` where it cannot be read, and `ValueError` where it is no result or damaged.
    """
    folder = Path(checked_path("path", path, "the folder of a result, or the file of a summary"))
    if folder.is_dir() and not (folder / "summary.json").is_file():
        names = sorted(found.parent.name for found in folder.glob("[!.]*/summary.json"))
        if (folder / "sweep.json").is_file():
            raise ValueError(f"{folder} holds a sweep: load one of its folders, or read its sweep.parquet")
        if names:
            some = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
            count = "1 folder with a result" if len(names) == 1 else f"{len(names)} folders with results"
            raise ValueError(
                f"{folder} is not a result, but has {count}: {some}; load one of them, "
                f"or draw all by `fanin report {folder}`"
            )
    return Result(_fanin.load_result(os.fspath(path)))
