"""Sensitivity: which settings move a figure, by SALib's methods on the sweep engine."""

import difflib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fanin import _fanin
from fanin._arguments import check_ranges, check_type, checked_texts, checked_whole
from fanin._fanin import RecordTable
from fanin._seeds import checked_seeds
from fanin._space import Choice, Range, Values, space
from fanin._terminal import Progress
from fanin.result import RunWarning
from fanin.scenario import Scenario, Setting
from fanin.sweeping import SCENARIO, Point, Sweep, _numbers, _unit, sweep

__all__ = ["Effect", "Sensitivity", "sensitivity"]

_MORRIS_TRAJECTORIES = 10
_MORRIS_LEVELS = 4
_SOBOL_SAMPLES = 64
_METHODS = {"morris": ("mu", "mu_star", "mu_star_conf", "sigma"), "sobol": ("S1", "S1_conf", "ST", "ST_conf")}


@dataclass(frozen=True)
class Effect:
    """How a setting moves a figure."""

    figure: str
    key: str
    #: Morris: `mu`, `mu_star`, `mu_star_conf`, `sigma`, in the figure's unit for the whole range.
    #: Sobol: `S1`, `S1_conf`, `ST`, `ST_conf`, shares of the variance; None where the figure never changes.
    values: Mapping[str, float | None]
    #: The figure's unit, such as `ms`; None for counts and factors.
    unit: str | None


@dataclass(frozen=True)
class Sensitivity:
    """How settings move figures, and the sweep that shows it."""

    method: str
    #: One for each figure and setting, in the order in which they were given.
    effects: tuple[Effect, ...]
    sweep: Sweep

    def ranking(self, figure: str | None = None) -> list[str]:
        """Return the settings, the one that moves the figure most first; by default the first figure."""
        figure = self.effects[0].figure if figure is None else figure
        name = "mu_star" if self.method == "morris" else "ST"
        mine = [effect for effect in self.effects if effect.figure == figure]
        if not mine:
            raise KeyError(f"the analysis has no figure {figure}")
        return [effect.key for effect in sorted(mine, key=lambda one: -(one.values[name] or 0.0))]

    def table(self) -> RecordTable:
        """Return a row for each figure and setting."""
        columns: dict[str, list[object]] = {
            "figure": [effect.figure for effect in self.effects],
            "key": [effect.key for effect in self.effects],
        }
        if self.method == "morris":
            # Sobol's indices are shares.
            columns["unit"] = [effect.unit for effect in self.effects]
        for name in _METHODS[self.method]:
            columns[name] = [effect.values[name] for effect in self.effects]
        return RecordTable.of_columns(columns, {})

    def __repr__(self) -> str:
        """Return the order of the settings for the first figure."""
        return (
            f"<fanin.Sensitivity of {self.effects[0].figure} by {self.method}: {', '.join(self.ranking())}>"
        )


def sensitivity(
    scenario: Scenario,
    over: Mapping[str, Values],
    *,
    of: str | Sequence[str] = "mean",
    method: str = "morris",
    samples: int | None = None,
    seeds: int | Iterable[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    executor: Any = None,
    tasks: int | None = None,
    timeout: float | None = None,
    progress: bool | Progress | None = None,
) -> Sensitivity:
    """Find which settings move a figure, with SALib, which ``pip install fanin[sensitivity]`` installs.

    `over` holds for each dotted key a range such as ``"60..1200"``, a list of values, or None for the default
    range. Ranges are sampled evenly on a logarithmic scale. `of` names figures as ``fanin tune`` does, or by
    their dotted names in the summary, such as ``network.pauses``; with several `seeds` it is their mean.

    `method` is `morris` (elementary effects, `samples` trajectories, by default 10) or `sobol` (first-order
    and total indices, `samples` a power of 2, by default 64). For k settings Morris' method takes
    samples · (k + 1) points and Sobol's samples · (k + 2). The points depend on the scenario's `run.seed`.
    They are a sweep: stored in `out`, resumable, and on any `executor`; see `sweep` for the other arguments.
    Raise `ScenarioError` where the scenario refuses a point.
    """
    check_type("scenario", scenario, Scenario, SCENARIO)
    check_ranges("over", over)
    draw, analyse = _salib(method)
    figures = checked_texts("of", of, 'a figure such as "mean", or a list of them')
    if not figures:
        raise ValueError("name at least one figure, for example of='mean'")
    unit_of = {figure: _unit(figure) if "." in figure else _fanin.figure_unit(figure) for figure in figures}
    default = _MORRIS_TRAJECTORIES if method == "morris" else _SOBOL_SAMPLES
    count = default if samples is None else checked_whole("samples", samples, 2)
    if method == "sobol" and count & (count - 1):
        raise ValueError(f"`samples` is a power of 2 for sobol, not {count}")
    axes = space(scenario, over)
    problem = {
        "num_vars": len(axes),
        "names": [axis.key for axis in axes],
        "bounds": [[0.0, 1.0]] * len(axes),
    }
    # SALib's bootstrap takes no seed of 0.
    seed = scenario.seed % 2**31 + 1
    shares = draw(problem, count, seed)
    rows = [_settings(axes, row) for row in shares]
    wanted = checked_seeds(1 if seeds is None else seeds, scenario.seed)
    swept = sweep(
        scenario,
        rows,
        seeds=wanted,
        out=out,
        executor=executor,
        tasks=tasks,
        timeout=timeout,
        progress=progress,
    )
    values = _measure(swept, rows, len(wanted), figures)
    effects = []
    for figure in figures:
        found = analyse(problem, shares, values[figure], seed)
        for number, axis in enumerate(axes):
            row = {name: found[name][number] for name in _METHODS[method]}
            effects.append(Effect(figure, axis.key, row, unit_of[figure]))
    return Sensitivity(method, tuple(effects), swept)


def _settings(axes: Sequence[Range | Choice], shares: Iterable[float]) -> dict[str, Setting]:
    return {axis.key: axis.at(float(share)) for axis, share in zip(axes, shares, strict=True)}


def _measure(
    swept: Sweep, rows: Sequence[Mapping[str, Setting]], seeds: int, figures: Sequence[str]
) -> dict[str, list[float]]:
    """Run the sweep, and return each figure of all rows as means over seeds."""
    known: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        # Each point needs each figure: the first one that lacks one ends the sweep.
        for point in swept:
            known[point.folder.name] = dict(_figures(point, figures))
    if swept.failed:
        first = next(iter(swept.failed.values()))
        raise RuntimeError(f"{len(swept.failed)} of {len(swept)} points have no result; the first: {first}")
    measured: dict[str, list[float]] = {figure: [] for figure in figures}
    for number in range(len(rows)):
        of_row = swept.asked[number * seeds : (number + 1) * seeds]
        for figure in figures:
            measured[figure].append(sum(known[point.folder.name][figure] for point in of_row) / seeds)
    return measured


def _figures(point: Point, figures: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Go through figures of a point; raise `ValueError` for one that its result lacks."""
    numbers = dict(_numbers(point.result.summary))
    for figure in figures:
        value = numbers.get(figure) if "." in figure else _fanin.figure_of(figure, point.result._loaded)
        if value is None:
            alike = difflib.get_close_matches(figure, numbers, 1) if "." in figure else []
            remedy = f"did you mean `{alike[0]}`?" if alike else "a longer `run.duration` may give one"
            raise ValueError(f"the result with {dict(point.settings)} has no `{figure}`; {remedy}")
        yield figure, float(value)


def _salib(method: str) -> tuple[Any, Any]:
    """Import SALib, and return how a method draws its points and how it analyses them."""
    if method not in _METHODS:
        raise ValueError(f"there is no method `{method}`; the methods are {', '.join(_METHODS)}")
    try:
        import numpy
        from SALib.analyze import morris as morris_analysis
        from SALib.analyze import sobol as sobol_analysis
        from SALib.sample import morris as morris_sample
        from SALib.sample import sobol as sobol_sample
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "fanin.sensitivity needs SALib: pip install 'fanin[sensitivity]'", name=error.name
        ) from None

    def draw_morris(problem: Any, count: int, seed: int) -> Any:
        return morris_sample.sample(problem, count, num_levels=_MORRIS_LEVELS, seed=seed)

    def analyse_morris(problem: Any, shares: Any, values: list[float], seed: int) -> dict[str, list[float]]:
        found = morris_analysis.analyze(
            problem, shares, numpy.array(values), num_levels=_MORRIS_LEVELS, seed=seed
        )
        return {name: [float(value) for value in found[name]] for name in _METHODS["morris"]}

    def draw_sobol(problem: Any, count: int, seed: int) -> Any:
        return sobol_sample.sample(problem, count, calc_second_order=False, seed=seed)

    def analyse_sobol(
        problem: Any, _shares: Any, values: list[float], seed: int
    ) -> dict[str, list[float | None]]:
        if min(values) == max(values):
            # There is no variance to take shares of.
            return {name: [None] * problem["num_vars"] for name in _METHODS["sobol"]}
        found = sobol_analysis.analyze(problem, numpy.array(values), calc_second_order=False, seed=seed)
        return {name: [float(value) for value in found[name]] for name in _METHODS["sobol"]}

    return (draw_morris, analyse_morris) if method == "morris" else (draw_sobol, analyse_sobol)
