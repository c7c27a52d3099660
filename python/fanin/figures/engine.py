"""Runs figures' simulations on the sweep engine, draws them, and keeps the gallery's record."""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fanin._terminal import bar
from fanin.figures import drawing, gallery
from fanin.figures.measure import Caption, Measured
from fanin.figures.spec import Figure, Quality, Run, scenarios_of
from fanin.result import Result, load
from fanin.scenario import Scenario
from fanin.sweeping import Point, sweep

__all__ = ["Drawn", "Store", "draw_all"]

#: Processor seconds for each simulated second of a figure that was never drawn: those of the thesis' rack.
_SECONDS_UNKNOWN = 2.0
_LINE_SECONDS = 20.0


class Store:
    """Results of runs at one quality, kept on disk by the hash of scenario, seed and version."""

    def __init__(self, folder: Path, quality: Quality) -> None:
        """Keep results in a folder."""
        self.folder = folder
        self.quality = quality
        self._points: dict[Run, list[Point]] = {}
        self._measured: dict[Run, Measured] = {}

    def points(self, runs: Sequence[Run]) -> list[Point]:
        """Return the points of runs, one for each seed."""
        missing = [run for run in runs if run not in self._points]
        for run, scenario in zip(missing, scenarios_of(missing, self.quality), strict=True):
            self._points[run] = [self._point(scenario, seed) for seed in self.quality.seeds]
        return [point for run in runs for point in self._points[run]]

    def _point(self, scenario: Scenario, seed: int) -> Point:
        seeded = scenario.replace({"run.seed": seed})
        return Point({}, seed, seeded, self.folder / seeded.key)

    def run(self, runs: Sequence[Run], done: Callable[[], object]) -> dict[str, str]:
        """Simulate what is not stored; return why points failed. `done` is called after each point."""
        failed: dict[str, str] = {}
        by_preset: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            if not all(point.is_done for point in self.points([run])):
                by_preset[run.preset].append(run)
        for preset, some in by_preset.items():
            settings = [self.quality.settings(run) for run in some]
            task = sweep(
                Scenario.load(preset), settings, seeds=self.quality.seeds, out=self.folder, progress=False
            )
            missing = sum(not point.is_done for point in task.points)
            for place, _ in enumerate(task):
                # Stored points come first.
                if place >= len(task) - missing:
                    done()
            failed.update(task.failed)
        return failed

    def look(self, run: Run) -> Measured:
        """Return the numbers of a run that is stored."""
        if run not in self._measured:
            results: list[Result] = [load(point.folder) for point in self.points([run])]
            warmup, _ = self.quality.times_ms or (run.warmup_ms, run.duration_ms)
            self._measured[run] = Measured(results, warmup)
        return self._measured[run]

    def seconds(self, run: Run) -> float:
        """Return the processor seconds that a stored run took."""
        return self.look(run).summed("speed", "cpu_s")


@dataclass(frozen=True)
class Drawn:
    """The outcome of drawing a figure."""

    figure: Figure
    #: Why it was not drawn; empty where it was.
    failed: str
    paths: tuple[Path, ...] = ()
    #: Our numbers, in words; empty where the runs are too short to say something.
    numbers: str = ""

    @property
    def caption(self) -> str:
        """The paper's statement, our numbers, and why they differ; empty without our numbers."""
        if not self.numbers:
            return ""
        return f"The paper states: {self.figure.stated}\nWe get: {self.numbers}\nWhy: {self.figure.why}"


def estimate(figures: Sequence[Figure], store: Store) -> tuple[int, float]:
    """Return how many runs are missing, and the processor seconds that they may take."""
    record = gallery.read_record()
    seen: set[Run] = set()
    count, seconds = 0, 0.0
    for figure in figures:
        runs = [run for run in figure.runs(store.quality) if run not in seen]
        seen.update(runs)
        missing = [run for run in runs if not all(point.is_done for point in store.points([run]))]
        kept = record.get(figure.name, {})
        each = kept.get("seconds", 0.0) / max(1, kept.get("runs", 1))
        simulated = sum(run.warmup_ms + run.duration_ms for run in missing) / 1e3
        count += len(missing) * len(store.quality.seeds)
        factor = 0.02 if store.quality.times_ms else store.quality.factor
        whole = len(missing) * each or simulated * _SECONDS_UNKNOWN
        seconds += whole * len(store.quality.seeds) * factor
    return count, seconds


def _about(seconds: float) -> str:
    """Say how long processor seconds take on this machine if it does nothing else."""
    cores = os.cpu_count() or 1
    wall = seconds / cores
    text = f"{wall:.0f} s" if wall < 120 else f"{wall / 60:.0f} min"
    return f"{text} on {cores} quiet cores"


def draw_all(
    figures: Sequence[Figure],
    store: Store,
    out: Path,
    say: Callable[[str], object] = print,
    is_quiet: bool = False,
) -> list[Drawn]:
    """Simulate what is missing and draw each figure as its runs are there."""
    out.mkdir(parents=True, exist_ok=True)
    missing, seconds = estimate(figures, store)
    if missing:
        runs = "1 run is" if missing == 1 else f"{missing} runs are"
        say(f"{runs} missing: about {_about(seconds)}")
    counter = _Counter(missing, is_quiet)
    drawn: list[Drawn] = []
    try:
        for figure in figures:
            one = _draw(figure, store, out, counter.step)
            drawn.append(one)
            if one.failed:
                say(f"{figure.name}: not drawn: {one.failed}")
            elif not is_quiet:
                say(f"{figure.name}: {one.paths[0]}")
    finally:
        counter.close()
    return drawn


def _draw(figure: Figure, store: Store, out: Path, done: Callable[[], object]) -> Drawn:
    runs = figure.runs(store.quality)
    failed = store.run(runs, done)
    if failed:
        return Drawn(figure, f"{len(failed)} runs have no result; the first: {next(iter(failed.values()))}")
    paths = drawing.save(figure, store.look, out, store.quality)
    numbers = "" if store.quality.is_thin else numbers_of(figure, store.look)
    return Drawn(figure, "", tuple(paths), numbers)


def numbers_of(figure: Figure, look: Callable[[Run], Measured]) -> str:
    """Return our numbers in the caption's words."""
    facts = figure.facts() if figure.facts is not None else {}
    return figure.caption.format_map({**facts, **Caption(figure.panels, look)})


class _Counter:
    """Counts runs: a bar in a terminal, else a line now and then."""

    def __init__(self, of: int, is_quiet: bool) -> None:
        self._of, self._done = of, 0
        self._start = self._said = time.monotonic()
        self._update, self.close = bar(False if is_quiet else None, f"{of} runs")
        self._has_lines = self._update is None and not is_quiet and not sys.stderr.isatty()

    def step(self) -> None:
        self._done += 1
        if self._update is not None:
            self._update(self._done, self._of)
        now = time.monotonic()
        if self._has_lines and now - self._said > _LINE_SECONDS:
            self._said = now
            left = (now - self._start) * (self._of - self._done) / self._done
            print(f"{self._done} of {self._of} runs, {left:.0f} s left", file=sys.stderr, flush=True)
