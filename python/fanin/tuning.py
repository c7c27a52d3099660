"""Tuning: the best values of settings by Optuna; each trial is some simulations of the sweep engine."""

import hashlib
import itertools
import json
import os
import socket
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _fanin, units
from fanin._arguments import (
    check_ranges,
    check_text,
    check_type,
    checked_list,
    checked_texts,
    checked_whole,
    out_folder,
    wrong,
)
from fanin._fanin import RecordTable
from fanin._seeds import checked_seeds
from fanin._space import Choice, Range, Values, space
from fanin._study import (
    RUNNING,
    best_trial,
    choices,
    counted,
    distribution,
    give_back,
    import_optuna,
    is_abandoned,
    open_study,
    pruner_of,
    quiet,
    sampler_of,
)
from fanin._terminal import Progress, bar
from fanin.result import Result, RunWarning, load
from fanin.scenario import Scenario, ScenarioError, ScenarioWarning, Setting, _toml, problems
from fanin.sweeping import SCENARIO, Point, Sweep, _column, check_engine, make_points

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

__all__ = ["TunedPoint", "Tuning", "tune"]

_SEEDS_MAX = 1000
# A constraint on a figure that the result lacks is this far from being met.
_ABSENT = 1e6


@dataclass(frozen=True)
class TunedPoint:
    """A trial of a study: settings that were tried, and how they came out."""

    number: int
    settings: Mapping[str, Setting]
    #: The objective for each seed, in the unit of the summary (ms, bytes, bit/s); a setting is in base units.
    values: tuple[float, ...]
    #: For each constraint 0 where all seeds meet it, else how far the worst one is, on a logarithmic scale.
    far: Mapping[str, float]
    #: `complete`, `pruned`, `refused` by the scenario, `absent` without the objective's figure, or `failed`.
    state: str
    #: Why it was refused, has no figure, or failed.
    why: str
    #: Where its simulations are.
    folders: tuple[Path, ...]

    @property
    def value(self) -> float | None:
        """The mean of the objective over seeds."""
        mean = _fanin.mean_interval(list(self.values))
        return None if mean is None else mean[0]

    @property
    def half(self) -> float | None:
        """Half the width of the mean's interval of 95 % confidence; None for a single seed."""
        mean = _fanin.mean_interval(list(self.values))
        return None if mean is None else mean[1]

    @property
    def is_feasible(self) -> bool:
        """True if all seeds ran and met all constraints."""
        return self.state == "complete" and not any(self.far.values())

    @property
    def results(self) -> list[Result]:
        """The results of its simulations; tables are read when they are asked for."""
        return [load(folder) for folder in self.folders]


class Tuning:
    """The result of a search, and the study of Optuna behind it."""

    def __init__(self, study: "optuna.Study", folder: Path, objective: str, unit: str | None) -> None:
        """Take what `tune` has made."""
        #: The study; `optuna.visualization` draws it.
        self.study = study
        #: Where its simulations are.
        self.folder = folder
        #: The objective's name.
        self.objective = objective
        #: The objective's unit, such as `ms`; None for a count or a factor.
        self.unit = unit

    @property
    def points(self) -> list[TunedPoint]:
        """All finished trials, in the order in which they began."""
        trials = counted(self.study)
        return [_point_of(trial, self.folder) for trial in trials if trial.state.is_finished()]

    @property
    def best(self) -> TunedPoint | None:
        """The best trial whose seeds all meet the constraints; None where there is none."""
        best = best_trial(self.study)
        return None if best is None else _point_of(best, self.folder)

    @property
    def nearest(self) -> TunedPoint | None:
        """The trial that comes nearest to the constraints; the best one where there is one."""
        run = [point for point in self.points if point.state == "complete"]
        return self.best or min(run, key=lambda point: sum(point.far.values()), default=None)

    def table(self) -> RecordTable:
        """Return a row for each finished trial: settings, objective, seeds, constraints, state and reason."""
        points = self.points
        columns: dict[str, list[object]] = {"trial": [point.number for point in points]}
        for key in dict.fromkeys(key for point in points for key in point.settings):
            columns[key] = _column(point.settings.get(key) for point in points)
        name = f"{self.objective} (objective)" if self.objective in columns else self.objective
        columns[name] = [point.value for point in points]
        columns["half_interval"] = [point.half for point in points]
        columns["seeds"] = [len(point.values) for point in points]
        for text in dict.fromkeys(text for point in points for text in point.far):
            columns[f"far from {text}"] = [point.far.get(text) for point in points]
        columns["state"] = [point.state for point in points]
        columns["why"] = [point.why for point in points]
        unit_of = {} if self.unit is None else {name: self.unit, "half_interval": self.unit}
        return RecordTable.of_columns(columns, unit_of)

    def __repr__(self) -> str:
        """Return the best point, or say that there is none."""
        best = self.best
        if best is None:
            return f"<fanin.Tuning of {self.objective}: no trial meets the constraints>"
        settings = ", ".join(f"{key} = {_toml(value)}" for key, value in best.settings.items())
        half = "" if best.half is None else f" ± {best.half:.3g}"
        unit = "" if self.unit is None else f" {self.unit}"
        return f"<fanin.Tuning: {self.objective} {best.value:.6g}{half}{unit} at {settings}>"


def tune(
    scenario: Scenario,
    *,
    over: Mapping[str, Values] | None = None,
    minimise: str | None = None,
    maximise: str | None = None,
    subject: str | Sequence[str] = (),
    seeds: int | Iterable[int] = 3,
    trials: int = 60,
    durations: Sequence[str] = (),
    batch: int = 4,
    sampler: "str | optuna.samplers.BaseSampler" = "tpe",
    pruner: "bool | optuna.pruners.BasePruner" = True,
    storage: "str | os.PathLike[str] | optuna.storages.BaseStorage | None" = None,
    out: str | os.PathLike[str] | None = None,
    executor: Any = None,
    tasks: int | None = None,
    timeout: float | None = None,
    progress: bool | Progress | None = None,
) -> Tuning:
    """Search for the best values of settings with Optuna, which ``pip install fanin[tune]`` installs.

    `minimise` or `maximise` names a figure or a setting. `subject` holds constraints such as ``drops=0`` or
    ``p99<20 ms``. Names are those of ``fanin tune``. `over` holds for each dotted key a range such as
    ``"60..1200"``, a list of values to choose from, or None for the default range.

    A trial simulates each of `seeds` (a number of them from ``run.seed`` on, or a list). It ends with the
    first seed that misses a constraint. It also ends where `pruner`, which may be any of Optuna's, finds it
    clearly worse than the best one. With `durations`, the first seed runs for these shorter times first, and
    the pruner judges them. `batch` trials are asked for at a time. `sampler` is `tpe`, `gp`, `cmaes`,
    `nsgaii`, `random`, or one of Optuna's.

    `trials` is how many the study has in all: called again, a search goes on where it was, and no simulation
    runs twice. Simulations are stored in `out` as by `sweep`, and the study in ``study.journal`` there, or in
    `storage` (a file, or one of Optuna's). Processes that call this with the same arguments share the study,
    and make `trials` trials together.
    `executor`, `tasks`, `timeout` and `progress` are those of `sweep`.
    """
    optuna = import_optuna()
    objective = minimise if maximise is None else maximise
    if objective is None or (minimise is not None and maximise is not None):
        raise TypeError("give either `minimise` or `maximise`, for example minimise='mean'")
    check_type("scenario", scenario, Scenario, SCENARIO)
    name = "minimise" if maximise is None else "maximise"
    check_text(name, objective, 'a figure or a setting, such as "mean" or "tor.buffer"')
    texts = checked_texts("subject", subject, 'a constraint such as "drops=0", or a list of them')
    goal = _fanin.TuningGoal(objective, maximise is not None, texts)
    trials, batch = checked_whole("trials", trials, 1), checked_whole("batch", batch, 1)
    if over is not None:
        check_ranges("over", over)
    backends = (str, os.PathLike, optuna.storages.BaseStorage)
    if storage is not None and not isinstance(storage, backends):
        raise wrong("storage", "a file or a storage of Optuna", storage)
    check_engine(executor, tasks, timeout)
    ladder = _ladder(scenario, seeds, durations)
    axes = space(scenario, over or {}, goal.key)
    if goal.key is None:
        unit = _fanin.figure_unit(goal.name)
    else:
        unit = next(axis.numbers.unit for axis in axes if isinstance(axis, Range) and axis.key == goal.key)
    folder = out_folder(out, "fanin-tune-")
    folder.mkdir(parents=True, exist_ok=True)
    described = [scenario.key, goal.name, maximise is not None, goal.constraints]
    described += [[(axis.key, axis.text) for axis in axes], ladder]
    digest = hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]
    with quiet(optuna):
        study = open_study(
            optuna,
            folder / "study.journal" if storage is None else storage,
            study_name=f"fanin-{scenario.name}-{digest}",
            direction="maximize" if maximise is not None else "minimize",
            pruner=pruner_of(optuna, pruner),
        )
        engine = _Engine(folder, executor, tasks, timeout)
        search = _Search(study, scenario, goal, axes, ladder, engine, sampler)
        update, close = bar(progress, f"{trials} trials")
        try:
            for done in search.run(trials, batch):
                if update is not None:
                    update(done, trials)
            if update is not None:
                update(trials, trials)
        finally:
            close()
    tuning = Tuning(study, folder, goal.name, unit)
    _warn(tuning, goal)
    return tuning


@dataclass(frozen=True)
class _Engine:
    """How simulations run."""

    folder: Path
    executor: Any
    tasks: int | None
    timeout: float | None

    def run(self, points: Mapping[str, Point]) -> dict[str, str]:
        """Simulate what is not stored; return why points have no result."""
        sweep = Sweep(list(points.values()), self.folder, self.executor, self.tasks, self.timeout, False)
        with warnings.catch_warnings():
            # Each trial keeps the reason.
            warnings.simplefilter("ignore", RunWarning)
            sweep.run()
        if sweep.lost:
            why = sweep.failed[min(sweep.lost)]
            raise RuntimeError(f"simulations were lost, so the search stops; call it again to go on: {why}")
        return sweep.failed


@dataclass
class _Open:
    """A trial that is not finished."""

    trial: "optuna.Trial"
    settings: dict[str, Setting]
    #: The value of the setting that is the objective.
    key_value: float | None
    values: list[float] = field(default_factory=list)
    far: dict[str, float] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)


class _Search:
    """Asks a study for trials, simulates them, and answers."""

    def __init__(
        self,
        study: "optuna.Study",
        scenario: Scenario,
        goal: _fanin.TuningGoal,
        axes: Sequence[Range | Choice],
        ladder: Sequence[tuple[str | None, int]],
        engine: _Engine,
        sampler: "str | optuna.samplers.BaseSampler",
    ) -> None:
        self.study = study
        self.scenario = scenario
        self.goal = goal
        self.axes = axes
        self.ladder = ladder
        self.engine = engine
        self.sampler = sampler
        self.optuna = import_optuna()
        self.state = self.optuna.trial.TrialState
        self.distributions = {axis.key: distribution(self.optuna, axis) for axis in axes}
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex}"
        # Checked before anything runs.
        self._renew_sampler()

    def run(self, trials: int, batch: int) -> Iterator[int]:
        """Work until the study has `trials` trials; give the number of finished ones."""
        if not counted(self.study):
            owner = {"owner": self.owner}
            self.study.enqueue_trial(self._own_values(), user_attrs=owner, skip_if_exists=True)
        RUNNING.add(self.owner)
        try:
            while True:
                known = counted(self.study)
                began = [trial for trial in known if trial.state != self.state.WAITING]
                opened = self._abandoned(began)[:batch]
                if not opened:
                    # The seed follows the study, so that one that goes on does not draw the same again.
                    self._renew_sampler(len(known))
                    left = min(batch, trials - len(began))
                    if left <= 0:
                        self._assert_hope(is_last=True)
                        return
                    opened = self._within(self._ask(left), trials)
                for trial in opened:
                    trial.set_user_attr("owner", self.owner)
                    # The process of an abandoned one may have ended before it had all its values.
                    for name, distribution in self.distributions.items():
                        trial._suggest(name, distribution)
                self._work([self._open(trial) for trial in opened])
                self._assert_hope()
                yield sum(trial.state.is_finished() for trial in counted(self.study))
        finally:
            RUNNING.discard(self.owner)

    def _ask(self, wanted: int) -> list["optuna.Trial"]:
        """Begin trials: those that wait, then new ones.

        A trial has its owner from the first moment, so that one whose process ends at any moment is known
        as abandoned. `ask` would write the owner afterwards.
        """
        waiting = self.study.get_trials(False, (self.state.WAITING,))[:wanted]
        asked = [self.study.ask() for _ in waiting]
        # A waiting trial had the owner that made it, perhaps this one: another process may take it.
        owner = {"owner": self.owner, "began": uuid.uuid4().hex}
        for _ in range(wanted - len(waiting)):
            new = self.optuna.trial.create_trial(state=self.state.RUNNING, user_attrs=owner)
            self.study.add_trial(new)
        began = [
            self.optuna.Trial(self.study, trial._trial_id)
            for trial in self.study.get_trials(False, (self.state.RUNNING,))
            if trial.user_attrs.get("began") == owner["began"]
        ]
        return asked + began

    def _within(self, asked: list["optuna.Trial"], trials: int) -> list["optuna.Trial"]:
        """Give back trials beyond the number of all; return the others.

        Processes that share the study ask at the same time. The storage numbers trials in one order, so that
        all of them find the same ones beyond.
        """
        places = {trial.number: place for place, trial in enumerate(counted(self.study))}
        within = []
        for trial in asked:
            if places[trial.number] < trials:
                within.append(trial)
            else:
                give_back(self.study, trial)
        return within

    def _renew_sampler(self, trials: int = 0) -> None:
        self.study.sampler = sampler_of(self.optuna, self.sampler, self.scenario.seed, trials)

    def _own_values(self) -> dict[str, Any]:
        """Return the scenario's own values, with which a study begins."""
        own: dict[str, Any] = {}
        for axis in self.axes:
            if isinstance(axis, Range):
                own[axis.key] = axis.numbers.start
            else:
                value: Any = self.scenario.settings
                for part in axis.key.split("."):
                    value = value[part]
                chosen = {_toml(one): name for name, one in choices(axis).items()}.get(_toml(value))
                if chosen is not None:
                    own[axis.key] = chosen
        return own

    def _abandoned(self, trials: Iterable["FrozenTrial"]) -> list["optuna.Trial"]:
        """Return trials whose process is no more: they are finished here, not made again."""
        running = [trial for trial in trials if trial.state == self.state.RUNNING]
        return [
            self.optuna.Trial(self.study, trial._trial_id)
            for trial in running
            if is_abandoned(trial.user_attrs.get("owner", ""))
        ]

    def _open(self, trial: "optuna.Trial") -> _Open:
        settings: dict[str, Setting] = {}
        key_value = None
        for axis in self.axes:
            value = trial.params[axis.key]
            if isinstance(axis, Choice):
                settings[axis.key] = choices(axis)[value]
                continue
            value = axis.rounded(value)
            settings[axis.key] = axis.setting(value)
            if axis.key == self.goal.key:
                key_value = float(value)
        trial.set_user_attr("settings", settings)
        return _Open(trial, settings, key_value)

    def _work(self, opened: list[_Open]) -> None:
        """Simulate trials step by step: the shorter times first, then seed after seed."""
        for step, (duration, seed) in enumerate(self.ladder):
            points: dict[str, Point] = {}
            keys: list[tuple[_Open, str]] = []
            for one in opened:
                try:
                    point = self._point(one, duration, seed)
                except ScenarioError as error:
                    # As in `fanin tune`, a combination that the scenario refuses is a trial.
                    self._report(one, "refused", problems(error)[0].message)
                    continue
                points[point.folder.name] = point
                keys.append((one, point.folder.name))
            failed = self.engine.run(points)
            judged = [
                (one, key, None if key in failed else self.goal.judge(points[key].result._loaded))
                for one, key in keys
            ]
            opened = []
            for one, key, verdict in judged:
                if verdict is None:
                    self._report(one, "failed", failed[key])
                elif self._goes_on(one, key, verdict, step, is_whole=duration is None):
                    opened.append(one)
        for one in opened:
            self._report(one, "complete")

    def _point(self, one: _Open, duration: str | None, seed: int) -> Point:
        settings = one.settings if duration is None else {**one.settings, "run.duration": duration}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScenarioWarning)
            return make_points(self.scenario, [(settings, seed)], self.engine.folder)[0]

    def _goes_on(
        self,
        one: _Open,
        key: str,
        verdict: tuple[float | None, list[float | None]],
        step: int,
        is_whole: bool,
    ) -> bool:
        """Take the result of a step; report it to the study where the trial ends with it."""
        value, far = verdict
        value = one.key_value if self.goal.key is not None else value
        if is_whole:
            one.folders.append(key)
            for text, distance in zip(self.goal.constraints, far, strict=True):
                distance = _ABSENT if distance is None else distance
                one.far[text] = max(distance, one.far.get(text, 0.0))
            if value is None:
                why = f"the result has no `{self.goal.name}`"
                if "p99" in self.goal.name:
                    why += ": a 99th percentile needs 100 events or requests"
                self._report(one, "absent", why)
                return False
            one.values.append(value)
            if any(one.far.values()):
                # Constraints hold with each seed, so that other seeds cannot help.
                self._report(one, "complete")
                return False
        if value is None:
            return True
        if step not in one.trial.storage.get_trial(one.trial._trial_id).intermediate_values:
            one.trial.report(sum(one.values) / len(one.values) if is_whole else value, step)
        if step + 1 < len(self.ladder) and one.trial.should_prune():
            self._report(one, "pruned")
            return False
        return True

    def _report(self, one: _Open, state: str, why: str = "") -> None:
        """Finish a trial."""
        trial = one.trial
        for name, value in (("state", state), ("why", why), ("values", one.values), ("keys", one.folders)):
            trial.set_user_attr(name, value)
        for text, far in one.far.items():
            if text not in trial.constraints:
                trial.set_constraint(text, far)
        # Another process may have finished it, where both found it abandoned.
        if state == "complete":
            mean = sum(one.values) / len(one.values)
            self.study.tell(trial, mean, skip_if_finished=True)
        else:
            self.study.tell(trial, state=self.state.PRUNED, skip_if_finished=True)

    def _assert_hope(self, is_last: bool = False) -> None:
        """Raise where no trial has had a result."""
        finished = [trial for trial in counted(self.study) if trial.state.is_finished()]
        # A refused combination costs nothing, and says nothing about other values.
        ran = [trial for trial in finished if is_last or trial.user_attrs.get("state") != "refused"]
        if ran and all(trial.user_attrs.get("why") for trial in ran):
            first = ran[0].user_attrs["why"]
            raise RuntimeError(f"none of the first {len(finished)} trials has a result; the first: {first}")


def _ladder(
    scenario: Scenario, seeds: int | Iterable[int], durations: Sequence[str]
) -> list[tuple[str | None, int]]:
    """Return the steps of a trial: the shorter durations with the first seed, then all seeds."""
    chosen = checked_seeds(seeds, scenario.seed, _SEEDS_MAX)
    right = 'a list of times, such as ["0.2 s"]'
    durations = checked_list("durations", durations, right)
    for text in durations:
        check_text("durations", text, right)
    times = [units.duration(text) for text in (*durations, scenario.settings["run"]["duration"])]
    if any(one >= other for one, other in itertools.pairwise(times)):
        raise ValueError("`durations` rise, and all are shorter than the scenario's `run.duration`")
    for text in durations:
        scenario.replace({"run.duration": text})
    return [*((text, chosen[0]) for text in durations), *((None, seed) for seed in chosen)]


def _point_of(trial: "FrozenTrial", folder: Path) -> TunedPoint:
    about = trial.user_attrs
    return TunedPoint(
        number=trial.number,
        settings=about.get("settings", {}),
        values=tuple(about.get("values", ())),
        far=dict(trial.constraints),
        state=about.get("state", trial.state.name.lower()),
        why=about.get("why", ""),
        folders=tuple(folder / key for key in about.get("keys", ())),
    )


def _warn(tuning: Tuning, goal: _fanin.TuningGoal) -> None:
    """Say what is not as it should be."""
    failed = [point for point in tuning.points if point.state == "failed"]
    if failed:
        trials = "1 trial has" if len(failed) == 1 else f"{len(failed)} trials have"
        text = f"{trials} no result; the first: {failed[0].why}"
        warnings.warn(text, RunWarning, stacklevel=3)
    if tuning.best is None:
        nearest = tuning.nearest
        near = "" if nearest is None else f"; nearest was {dict(nearest.settings)}"
        others = sum(not trial.state.is_finished() for trial in counted(tuning.study))
        trials = "1 trial is" if others == 1 else f"{others} trials are"
        still = f"; {trials} still open in other processes" if others else ""
        text = f"no trial meets {', '.join(goal.constraints)}{near}{still}"
        warnings.warn(text, RunWarning, stacklevel=3)
