"""A figure of a paper as data: its runs, its panels, the paper's statement and its caption."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fanin.scenario import Scenario, Setting

if TYPE_CHECKING:
    from fanin.figures.measure import Measured

__all__ = [
    "FULL",
    "GALLERY",
    "PAPERS",
    "TINY",
    "Figure",
    "Mark",
    "Panel",
    "Quality",
    "Run",
    "Series",
    "Undrawn",
]

#: The papers, by the short names that figures carry; the last is a group of figures from several.
PAPERS: Mapping[str, str] = {
    "thesis": "T. Colombo: optimising data collection in the ATLAS data-acquisition network (thesis)",
    "icc15": "Jereczek, Lehmann Miotto, Malone: analogues between tuning TCP for data acquisition and "
    "datacenter networks (ICC'15)",
    "lcn15": "Jereczek: a lossless switch for data acquisition networks (LCN'15, slides)",
    "multihost": "Jereczek et al.: approaching incast congestion with multi-host Ethernet controllers",
    "m21tcp": "Adesanmi, Mhamdi: M21TCP, overcoming TCP incast congestion in data centres (CloudNet 2015)",
    "technique": "Techniques of further papers, to compare with",
}


@dataclass(frozen=True)
class Run:
    """One simulation: a preset with settings, its warm-up and its measured time."""

    preset: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    warmup_ms: float = 1000.0
    duration_ms: float = 3000.0

    def set(self, key: str, value: Setting) -> "Run":
        """Return this run with another value of a key."""
        return Run(self.preset, {**self.settings, key: value}, self.warmup_ms, self.duration_ms)

    def timed(self, warmup_ms: float, duration_ms: float) -> "Run":
        """Return this run with other times."""
        return Run(self.preset, self.settings, warmup_ms, duration_ms)

    @property
    def identity(self) -> str:
        """A text that is equal for equal runs."""
        return json.dumps(
            [self.preset, dict(self.settings), self.warmup_ms, self.duration_ms], sort_keys=True
        )

    def __hash__(self) -> int:
        """Hash the identity; settings are no key of a dictionary themselves."""
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        """Compare identities."""
        return isinstance(other, Run) and other.identity == self.identity


@dataclass(frozen=True)
class Quality:
    """How long and how often runs of figures are simulated."""

    name: str
    #: Factor of the measured time.
    factor: float = 1.0
    seeds: tuple[int, ...] = (1,)
    #: Times in place of each run's own, in milliseconds: warm-up and duration.
    times_ms: tuple[float, float] | None = None
    #: Only the first and the last value of each scan.
    is_thin: bool = False

    def settings(self, run: Run) -> dict[str, Setting]:
        """Return the settings of a run, its times included."""
        warmup, duration = self.times_ms or (run.warmup_ms, run.duration_ms * self.factor)
        return {
            **run.settings,
            "run.warmup": f"{warmup * 1000:.0f} us",
            "run.duration": f"{duration * 1000:.0f} us",
        }


#: As docs/gallery.md shows them.
GALLERY = Quality("gallery")
#: Three seeds, three times as long.
FULL = Quality("full", factor=3.0, seeds=(1, 2, 3))
#: For tests of the drawing; numbers mean nothing.
TINY = Quality("tiny", times_ms=(1.0, 30.0), is_thin=True)


@dataclass(frozen=True)
class Series:
    """A line, a histogram or a row of boxes: runs by their place on the horizontal axis."""

    label: str
    runs: tuple[tuple[float, Run], ...]
    #: Place in the palette; by default that of the series in its panel.
    colour: int | None = None
    line: str = "-"


@dataclass(frozen=True)
class Mark:
    """A value that the paper states, drawn as a thin line."""

    label: str
    value: float
    #: `x` or `y`.
    axis: str = "y"


#: Draws the series of a panel on axes.
Draw = Callable[[Any, "Panel", Callable[[Run], "Measured"]], None]


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure."""

    title: str
    x: str
    y: str
    draw: Draw
    series: tuple[Series, ...]
    #: The value of a run, for panels that draw one.
    value: Callable[["Measured"], float] | None = None
    #: Points of a run, for panels that draw them over time.
    trace: Callable[["Measured"], tuple[Sequence[float], Sequence[float]]] | None = None
    #: Axes with a logarithmic scale: `x`, `y` or `xy`.
    log: str = ""
    marks: tuple[Mark, ...] = ()
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    #: Draw the ideal collection time as a line.
    has_ideal: bool = False
    #: Width of a histogram's bins, on the horizontal axis.
    bin: float = 10.0

    def thinned(self) -> "Panel":
        """Return this panel with the first and the last run of each series."""
        thin = tuple(
            Series(one.label, (one.runs[0], one.runs[-1])[: len(one.runs)], one.colour, one.line)
            for one in self.series
        )
        return Panel(**{**self.__dict__, "series": thin})


@dataclass(frozen=True)
class Figure:
    """A result figure of a paper, drawn from runs."""

    paper: str
    #: The number in the paper; of a technique its name.
    number: str
    #: The place in the paper.
    place: str
    #: The content, as a title.
    shows: str
    panels: tuple[Panel, ...]
    #: The paper's statement about it.
    stated: str
    #: Our numbers: a template that reads panels `a`, `b`, … by the labels of their series and by x.
    caption: str
    #: Why both differ, or where they agree.
    why: str
    #: More numbers for the caption, of figures that a plan gives without a run.
    facts: Callable[[], Mapping[str, float]] | None = None

    @property
    def name(self) -> str:
        """The name of its files, and the one to ask for it by."""
        return f"{self.paper}-{self.number}".lower().replace(" ", "-")

    def of(self, quality: Quality) -> tuple[Panel, ...]:
        """Return its panels at a quality."""
        return tuple(panel.thinned() for panel in self.panels) if quality.is_thin else self.panels

    def runs(self, quality: Quality) -> tuple[Run, ...]:
        """Return its runs, each once."""
        return tuple(
            dict.fromkeys(run for panel in self.of(quality) for one in panel.series for _, run in one.runs)
        )

    def digest(self) -> str:
        """Return a hash of all that decides its picture at the gallery's quality, but for code.

        Scenarios are resolved, so that a changed default or preset changes it.
        """
        scenarios = [scenario.hash for scenario in scenarios_of(self.runs(GALLERY), GALLERY)]
        panels = [
            [
                *(
                    panel.title,
                    panel.x,
                    panel.y,
                    panel.log,
                    panel.x_range,
                    panel.y_range,
                    panel.has_ideal,
                    panel.bin,
                ),
                [[mark.label, mark.value, mark.axis] for mark in panel.marks],
                [[one.label, one.line, one.colour, [x for x, _ in one.runs]] for one in panel.series],
            ]
            for panel in self.panels
        ]
        facts = dict(self.facts()) if self.facts is not None else {}
        text = json.dumps([self.caption, scenarios, panels, facts], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Undrawn:
    """A figure of a paper that no run of ours can draw, and the reason."""

    paper: str
    number: str
    shows: str
    reason: str

    @property
    def name(self) -> str:
        """The name, as of a figure that is drawn."""
        return f"{self.paper}-{self.number}"


def scenarios_of(runs: Sequence[Run], quality: Quality) -> Iterator[Scenario]:
    """Return the scenario of each run, without its seed."""
    presets: dict[str, Scenario] = {}
    for run in runs:
        if run.preset not in presets:
            presets[run.preset] = Scenario.load(run.preset)
        yield presets[run.preset].replace(quality.settings(run))
