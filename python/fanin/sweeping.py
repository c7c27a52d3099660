"""Sweeps: one scenario with many settings and seeds, on any executor, kept on disk point by point."""

import difflib
import itertools
import os
import threading
import time
import traceback
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanin import _fanin
from fanin._arguments import (
    check_seconds,
    check_settings,
    check_type,
    checked_list,
    checked_whole,
    out_folder,
)
from fanin._fanin import RecordTable
from fanin._seeds import checked_seeds, sets_seed
from fanin._terminal import Progress, bar
from fanin.result import Result, RunWarning, load
from fanin.scenario import Scenario, Setting, plain

__all__ = ["Point", "Sweep", "sweep"]

# The argument `scenario`, in words.
SCENARIO = 'a scenario, such as fanin.Scenario.load("incast")'
# A task holds as many small points as fill about this long, so that sending it costs little.
_TASK_SECONDS = 2.0
_TASK_POINTS_MAX = 200
# A task that is this much later than its points may take has lost its worker.
_GRACE_SECONDS = 1.0
_POLL_SECONDS = 0.01
_ATTEMPTS_MAX = 3
# Runs of sweeps that Ctrl-C has ended in this process, which may be a worker.
_INTERRUPTED: set[str] = set()
_UNITS = {"ms": "ms", "us": "us", "ps": "ps", "s": "s", "bps": "bit/s", "hz": "Hz", "bytes": "bytes"}


@dataclass(frozen=True)
class Point:
    """One simulation of a sweep."""

    #: The settings in which it differs from the scenario of the sweep.
    settings: Mapping[str, Setting]
    seed: int
    scenario: Scenario
    #: Where its result is, once it is done; the folder's name is a hash of scenario, seed and version.
    folder: Path

    @property
    def is_done(self) -> bool:
        """Return whether its result is stored."""
        return _fanin.is_stored(str(self.folder.parent), self.folder.name)

    @property
    def result(self) -> Result:
        """Its result; tables are read when they are asked for."""
        return load(self.folder)


class Sweep:
    """The points of a sweep; iterating runs it, and gives each point as it is done."""

    def __init__(
        self,
        points: Sequence[Point],
        folder: Path,
        executor: Any,
        tasks: int | None,
        timeout: float | None,
        progress: bool | Progress | None,
    ) -> None:
        """Take what `sweep` has checked."""
        #: A point for each combination of settings and seed, in order.
        self.asked = tuple(points)
        unique: dict[str, Point] = {}
        for point in points:
            unique.setdefault(point.folder.name, point)
        #: The points to run: two of the same scenario and seed are one.
        self.points = tuple(unique.values())
        self.folder = folder
        #: Why points have no result, by the name of their folder.
        self.failed: dict[str, str] = {}
        #: Those of them whose worker or executor failed, and not they themselves.
        self.lost: set[str] = set()
        self._executor = executor
        self._tasks = tasks
        self._timeout = timeout
        self._progress = progress

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def __repr__(self) -> str:
        """Return how many points are done, and where."""
        done = sum(point.is_done for point in self.points)
        return f"<fanin.Sweep, {done} of {len(self.points)} points done, in {self.folder}>"

    def __iter__(self) -> Iterator[Point]:
        """Run what is not stored yet, and give each point as it is done."""
        return self._iterate(2)

    def _iterate(self, depth: int) -> Iterator[Point]:
        """Run and give points; a warning names the place that many calls above."""
        self.failed.clear()
        self.lost.clear()
        update, close = bar(self._progress, f"{len(self.points)} points")
        done = 0
        try:
            for point in self._run():
                done += 1
                if update is not None:
                    update(done, len(self.points))
                yield point
            if update is not None and self.failed:
                # Nothing is left to do.
                update(len(self.points), len(self.points))
        finally:
            close()
        if self.failed:
            first = next(iter(self.failed.values()))
            text = f"{len(self.failed)} of {len(self.points)} points have no result; the first: {first}"
            warnings.warn(text, RunWarning, stacklevel=depth)

    def run(self) -> "Sweep":
        """Run what is not stored yet, and return this sweep."""
        return self._finish(3)

    def _finish(self, depth: int) -> "Sweep":
        for _ in self._iterate(depth + 1):
            pass
        return self

    def table(self, *figures: str) -> RecordTable:
        """Run what is left, and return a row for each point that has a result, in the order of the points.

        Columns are the settings, the seed, figures of the summary by their dotted names (all numbers where
        none are named), and the folder.
        """
        if not all(point.is_done for point in self.points):
            self._finish(3)
        points = [point for point in self.points if point.is_done]
        summaries = [dict(_numbers(point.result.summary)) for point in points]
        names = list(figures) or list(dict.fromkeys(itertools.chain.from_iterable(summaries)))
        unknown = [name for name in names if summaries and not any(name in summary for summary in summaries)]
        if unknown:
            known = dict.fromkeys(itertools.chain.from_iterable(summaries))
            alike = difflib.get_close_matches(unknown[0], known, 1)
            remedy = f"; did you mean `{alike[0]}`?" if alike else ""
            raise KeyError(f"no summary has {', '.join(unknown)}{remedy}")
        keys = dict.fromkeys(key for point in points for key in point.settings)
        columns: dict[str, list[object]] = {
            key: _column(point.settings.get(key) for point in points) for key in keys
        }
        columns["seed"] = [point.seed for point in points]
        for name in names:
            columns[name] = [summary.get(name) for summary in summaries]
        columns["folder"] = [str(point.folder) for point in points]
        return RecordTable.of_columns(columns, {name: unit for name in names if (unit := _unit(name))})

    def _run(self) -> Iterator[Point]:
        missing: dict[str, Point] = {}
        for point in self.points:
            if point.is_done:
                yield point
            else:
                missing[point.folder.name] = point
        if not missing:
            return
        stop = threading.Event()
        if self._executor is not None:
            submit, width = _submitter(self._executor)
            try:
                # Threads of this process see the event; workers elsewhere do not.
                shared = stop if type(self._executor) is ThreadPoolExecutor else None
                yield from self._spread(missing, submit, width, shared)
            finally:
                stop.set()
            return
        threads = self._tasks or os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            try:
                yield from self._spread(missing, pool.submit, lambda: threads, stop)
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)

    def _spread(
        self,
        missing: dict[str, Point],
        submit: Callable[..., Any],
        width: Callable[[], int],
        stop: threading.Event | None,
    ) -> Iterator[Point]:
        """Hand out points in tasks, and give each as its result is there; left early, cancel the tasks."""
        running: dict[Any, tuple[list[str], float]] = {}
        try:
            yield from self._hand_out(missing, submit, width, stop, running)
        finally:
            for task in running:
                # One that has begun may refuse, and a batch system may not answer.
                with suppress(Exception):
                    task.cancel()

    def _hand_out(
        self,
        missing: dict[str, Point],
        submit: Callable[..., Any],
        width: Callable[[], int],
        stop: threading.Event | None,
        running: dict[Any, tuple[list[str], float]],
    ) -> Iterator[Point]:
        waiting = deque(missing)
        attempts = dict.fromkeys(missing, 0)
        terms = _Terms(str(self.folder), self._timeout, uuid.uuid4().hex, _fanin.VERSION)
        # Jobs given up are kept: without its job a hung worker would look idle.
        given_up: list[Any] = []
        more = [] if stop is None else [stop]
        seconds = _TASK_SECONDS
        while waiting or running:
            wide = self._tasks or width()
            while waiting and len(running) < (wide if self._timeout else 2 * wide):
                fair = -(-len(waiting) // wide)
                size = max(1, min(int(_TASK_SECONDS / seconds), fair, _TASK_POINTS_MAX))
                keys = [waiting.popleft() for _ in range(min(size, len(waiting)))]
                for key in keys:
                    attempts[key] += 1
                try:
                    task = submit(_work, terms, [missing[key].scenario for key in keys], *more)
                except Exception as error:
                    why = f"the executor takes nothing any more: {type(error).__name__}: {error}"
                    self.failed.update(dict.fromkeys([*keys, *waiting], why))
                    self.lost.update(keys, waiting)
                    waiting.clear()
                    break
                allowed = (
                    float("inf") if self._timeout is None else self._timeout * len(keys) + _GRACE_SECONDS
                )
                running[task] = (keys, time.monotonic() + allowed)
            time.sleep(_POLL_SECONDS)
            for task in list(running):
                keys, deadline = running[task]
                ended = task.done()
                if not ended and time.monotonic() < deadline:
                    continue
                del running[task]
                why = "its worker does not answer"
                reasons: dict[str, str] = {}
                if ended:
                    why, reasons, took = _outcome(task)
                    # A running mean, so that one odd point does not decide.
                    seconds = (seconds + max(took, 1e-3)) / 2 if took else seconds
                else:
                    given_up.append(task)
                for key in keys:
                    if missing[key].is_done:
                        yield missing[key]
                    elif key in reasons or attempts[key] >= _ATTEMPTS_MAX:
                        self.failed[key] = reasons.get(key, why)
                        self.lost.update({key} - reasons.keys())
                    else:
                        waiting.append(key)


def sweep(
    scenario: Scenario,
    over: Mapping[str, Sequence[Setting]] | Sequence[Mapping[str, Setting]],
    *,
    seeds: int | Iterable[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    executor: Any = None,
    tasks: int | None = None,
    timeout: float | None = None,
    progress: bool | Progress | None = None,
) -> Sweep:
    """Simulate a scenario with all combinations of settings and seeds; iterate over what this returns.

    `over` holds the values of each dotted key, or a list of settings, one for each point. `seeds` holds
    seeds, or is their number from `run.seed` on; where `over` has `run.seed`, leave it out. Each point is
    stored whole or not at all in a folder of `out`. A hash of its resolved scenario, seed and version names
    that folder, also for `fanin sim --sweep … --resume`. So a sweep that was cut goes on where it was, and no
    point runs twice. Without `out` the folder is a temporary one, which stays.

    `executor` is any of `concurrent.futures`, a `dask.distributed.Client`, or one of submitit; by default
    threads. Its workers must see `out`. `tasks` is how many run at a time. A point that takes longer than
    `timeout` seconds by the clock is given up. If a worker is lost or hangs, another one takes its point.
    Everything is checked before anything runs; raise as `Scenario.replace`.

    >>> points = sweep(
    ...     Scenario.load("incast", {"run.duration": "50 ms"}),
    ...     {"workload.senders": [4, 8]},
    ...     seeds=[1, 2],
    ...     progress=False,
    ... )
    >>> table = points.table("goodput_bps.total")
    >>> table["workload.senders"], table["seed"]
    ([4, 4, 8, 8], [1, 2, 1, 2])
    """
    check_type("scenario", scenario, Scenario, SCENARIO)
    check_engine(executor, tasks, timeout)
    if isinstance(over, Mapping):
        check_settings("over", over)
        for key, values in over.items():
            if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
                raise TypeError(f"{key} needs a list of values, such as [{values!r}], not {values!r}")
        # An iterator gives its values once.
        lists = {key: list(values) for key, values in over.items()}
        for key, values in lists.items():
            if not values:
                raise ValueError(f"{key} needs at least one value")
        combinations: list[dict[str, Setting]] = [
            dict(zip(lists, map(plain, row), strict=True)) for row in itertools.product(*lists.values())
        ]
    else:
        right = 'a dictionary of lists such as {"tor.buffer": ["1 MB"]}, or a list of settings'
        every = checked_list("over", over, right)
        for settings in every:
            check_settings("a point of over", settings)
        combinations = [{key: plain(value) for key, value in settings.items()} for settings in every]
    if seeds is not None and any(map(sets_seed, combinations)):
        raise ValueError("`run.seed` is swept and `seeds` is given: leave one of them out")
    wanted: list[int | None] = [None] if seeds is None else [*checked_seeds(seeds, scenario.seed)]
    folder = out_folder(out, "fanin-sweep-")
    points = make_points(scenario, itertools.product(combinations, wanted), folder)
    folder.mkdir(parents=True, exist_ok=True)
    return Sweep(points, folder, executor, tasks, timeout, progress)


def check_engine(executor: Any, tasks: int | None, timeout: float | None) -> None:
    """Raise `TypeError` or `ValueError` where simulations cannot run so."""
    if isinstance(executor, type):
        raise TypeError(f"`executor` is an object, such as `{executor.__name__}(…)`, not the class itself")
    if executor is not None:
        _submitter(executor)
    if timeout is not None:
        check_seconds("timeout", timeout)
    if tasks is not None:
        checked_whole("tasks", tasks, 1)


def make_points(
    scenario: Scenario, asked: Iterable[tuple[Mapping[str, Setting], int | None]], folder: Path
) -> list[Point]:
    """Return a scenario with each of many settings and seeds as points that are stored in `folder`."""
    pairs = list(asked)
    changes = [settings if seed is None else {**settings, "run.seed": seed} for settings, seed in pairs]
    return [
        Point(settings, one.seed, one, folder / one.key)
        for (settings, _), one in zip(pairs, scenario.replace_each(changes), strict=True)
    ]


def _submitter(executor: Any) -> tuple[Callable[..., Any], Callable[[], int]]:
    """Return how tasks are handed to an executor, and how many it runs at a time."""
    if hasattr(executor, "get_executor") and hasattr(executor, "ncores"):
        # A client of dask; a task with the same arguments is to run again if it is handed out again.
        return executor.get_executor(pure=False).submit, lambda: sum(executor.ncores().values()) or 1
    if isinstance(executor, Executor):
        threads = getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        return executor.submit, lambda: threads
    if hasattr(executor, "submit"):
        return executor.submit, lambda: os.cpu_count() or 1
    raise TypeError(f"{type(executor).__name__} is not an executor: it has no `submit`")


def _outcome(task: Any) -> tuple[str, dict[str, str], float]:
    """Return why a task ended early, why its points failed, and the mean seconds of those that ran."""
    try:
        reasons, took = task.result()
    except Exception as error:
        # A worker that died, or a broken executor.
        return f"its worker was lost: {type(error).__name__}: {error}", {}, 0.0
    return "its worker stopped", reasons, took


@dataclass(frozen=True)
class _Terms:
    """The terms that all tasks of one run of a sweep share."""

    folder: str
    timeout: float | None
    #: Distinguishes this run from others in a worker's memory.
    token: str
    #: That of Fanin where the sweep runs.
    version: str


def _work(
    terms: _Terms, scenarios: Sequence[Scenario], stop: threading.Event | None = None
) -> tuple[dict[str, str], float]:
    """Simulate and store points; return why some failed, and the mean seconds of the others.

    Ctrl-C reaches the processes of a pool too. One that it has interrupted begins nothing of the same run.
    """
    if terms.version != _fanin.VERSION:
        # Its points would have other names, so that the sweep would not find them.
        raise RuntimeError(f"it has Fanin {_fanin.VERSION}, and the sweep has {terms.version}: install one")
    failed: dict[str, str] = {}
    times = []
    for scenario in scenarios:
        if terms.token in _INTERRUPTED or (stop is not None and stop.is_set()):
            break
        # Another worker may have done it in the meantime.
        if _fanin.is_stored(terms.folder, scenario.key):
            continue
        start = time.monotonic()

        def look(now: float, end: float, start: float = start) -> None:
            # Complete points are stored.
            if now >= end:
                return
            if stop is not None and stop.is_set():
                raise InterruptedError("the sweep was ended")
            if terms.timeout is not None and time.monotonic() - start > terms.timeout:
                raise TimeoutError(f"it took longer than {terms.timeout:g} s")

        try:
            result = scenario.play(look)
            if result.end == "complete":
                result.store(terms.folder, scenario.key)
                times.append(time.monotonic() - start)
            else:
                failed[scenario.key] = result.diagnosis or result.end
        except KeyboardInterrupt:
            _INTERRUPTED.add(terms.token)
            raise
        except Exception as error:
            failed[scenario.key] = "".join(traceback.format_exception_only(error)).strip()
    return failed, sum(times) / len(times) if times else 0.0


def _numbers(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, int | float]]:
    """Go through the numbers of a summary by their dotted names, without what the machine needed."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            if path or name not in ("speed", "scenario"):
                yield from _numbers(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool) and f"{path}{name}" != "seed":
            yield f"{path}{name}", value


def _column(values: Iterable[Setting | None]) -> list[object]:
    """Return values of one setting as a column: numbers or texts as they are, others as texts."""
    column: list[object] = list(values)
    present = [value for value in column if value is not None]
    plain = all(isinstance(value, str) for value in present)
    if plain or all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return column
    return [None if value is None else str(value) for value in column]


def _unit(name: str) -> str | None:
    """Return the unit that a figure's dotted name ends in, or one of the names above it."""
    for part in reversed(name.split(".")):
        unit = _UNITS.get(part.rsplit("_", 1)[-1]) if "_" in part else None
        if unit:
            return unit
    return None
