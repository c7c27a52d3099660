"""Scenarios: what a system is and how it is used, loaded and checked as by the command `fanin`."""

import html
import json
import math
import numbers
import os
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

from fanin import _fanin, units
from fanin._arguments import check_settings, check_text, check_type, checked_path
from fanin._fanin import ScenarioError, presets
from fanin._seeds import checked_seed
from fanin._terminal import Progress, bar
from fanin.command import Advice, advise, run
from fanin.result import Result, RunWarning

__all__ = [
    "Problem",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Setting",
    "Settings",
    "presets",
    "problems",
]

# The argument `duration`, in words.
_DURATION = 'a text with a unit, such as "2 s"'

Setting = bool | int | float | str | Sequence["Setting"] | Mapping[str, "Setting"]


class ScenarioWarning(UserWarning):
    """A setting is not wrong, but most likely not meant."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a scenario; lines and columns count from 1."""

    message: str
    file: str | None
    line: int | None
    column: int | None
    help: tuple[str, ...]


def problems(error: ScenarioError) -> list[Problem]:
    """Return what an error complains about, one by one."""
    check_type("error", error, ScenarioError, "the ScenarioError that was raised")
    return [_problem(*fields) for fields in error.fields]


def _problem(message: str, place: tuple[str, int, int] | None, help: list[str]) -> Problem:
    file, line, column = place or (None, None, None)
    return Problem(message, file, line, column, tuple(help))


class Settings(dict[str, Any]):
    """Settings as nested dictionaries that cannot be changed; `Scenario.replace` makes another scenario."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a scenario does not change: `scenario.replace(...)` returns another one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        """Return how a copy is made."""
        return (_frozen, (dict(self),))


def _frozen(value: Any) -> Any:
    """Return settings that cannot be changed, at any depth."""
    if isinstance(value, dict):
        return Settings({key: _frozen(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return tuple(_frozen(inner) for inner in value)
    return value


def plain(value: Setting) -> Setting:
    """Return the int or float that a number of another library, such as numpy, stands for."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _toml(value: Setting) -> str:
    """Write a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a TOML string, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    number = plain(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"a setting is a finite number, not {number}")
    if isinstance(number, int | float):
        return repr(number if type(number) is int else float(number))
    raise TypeError(
        f"a setting is a text, a number, a truth value, a list or a table, not {type(value).__name__}"
    )


def _sets(set: Mapping[str, Setting] | None) -> tuple[str, ...]:
    sets = []
    if set is not None:
        check_settings("set", set)
    for key, value in (set or {}).items():
        try:
            sets.append(f"{key}={_toml(value)}")
        except (TypeError, ValueError) as error:
            raise type(error)(f"`{key}`: {error}") from None
    return tuple(sets)


def _dotted(section: str, value: Setting) -> Iterator[tuple[str, Setting]]:
    """Go through the settings of a section by their dotted keys; a size model is one setting."""
    if isinstance(value, Mapping) and "distribution" not in value:
        for key, inner in value.items():
            yield from _dotted(f"{section}.{key}", inner)
    else:
        yield section, value


@dataclass(frozen=True)
class Scenario:
    """A scenario that has passed every check. It never changes; `replace` returns another one.

    >>> scenario = Scenario.load("incast", {"workload.senders": 32})
    >>> scenario.settings["workload"]["senders"]
    32
    >>> scenario.replace(workload={"senders": 8}).settings["workload"]["senders"]
    8
    """

    _loaded: _fanin.LoadedScenario = field(repr=False, compare=False)
    # A file or preset, or a name and its text; and the settings over it.
    _source: str | tuple[str, str] = field(repr=False, compare=False)
    _sets: tuple[str, ...] = field(repr=False, compare=False)
    #: A fingerprint: equal for equal settings, whatever the files.
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        """Take over the fingerprint."""
        object.__setattr__(self, "hash", self._loaded.hash)

    def __repr__(self) -> str:
        """Return the name, and the settings over the file or preset."""
        changed = "".join(f", {text}" for text in self._changed())
        return f"<fanin.Scenario {self.name}{changed}>"

    def _repr_html_(self) -> str:
        """Return name, title and the settings over the file or preset for a notebook."""
        title, source = (html.escape(str(self.settings.get(key, ""))) for key in ("title", "source"))
        changed = "".join(f"<br/><code>{html.escape(text)}</code>" for text in self._changed())
        about = f"<br/>{title}" + (f" <small>({source})</small>" if source else "")
        name = f"<strong>{html.escape(self.name)}</strong>"
        return f'<div style="font-family: sans-serif">{name}{about}{changed}</div>'

    def _changed(self) -> list[str]:
        """Return the settings over the file or preset; of several for one key the last."""
        last = dict(text.split("=", 1) for text in self._sets)
        return [f"{key} = {value}" for key, value in last.items()]

    @classmethod
    def load(cls, source: str | os.PathLike[str], set: Mapping[str, Setting] | None = None) -> "Scenario":
        """Load a file, or a preset by its name; `set` overrides settings by their dotted keys.

        Raise `ScenarioError` with every problem and its line. Warn where a setting has no effect.
        """
        path = checked_path("source", source, 'a file or the name of a preset, such as "incast"')
        return cls._checked(path, _sets(set))

    @classmethod
    def load_text(cls, name: str, text: str, set: Mapping[str, Setting] | None = None) -> "Scenario":
        """Load a scenario from text that is not in a file; `extends` in it finds presets only."""
        check_text("name", name, 'a text such as "mine"')
        check_text("text", text, "a scenario as text (TOML)")
        return cls._checked((name, text), _sets(set))

    @classmethod
    def _checked(cls, source: str | tuple[str, str], sets: tuple[str, ...]) -> "Scenario":
        loaded = _load(source, sets)
        for fields in loaded.warnings:
            warnings.warn(_problem(*fields).message, ScenarioWarning, stacklevel=3)
        # The file is found from any working directory. A preset's name means the preset.
        if isinstance(source, str) and source not in presets() and os.path.isfile(source):
            source = os.path.abspath(source)
        return cls(loaded, source, sets)

    def __reduce__(self) -> tuple[object, ...]:
        """Return how another process gets the same scenario, whether it sees the files or not."""
        return (_restore, (self.name, self._loaded.toml, self._source, self._sets))

    @property
    def name(self) -> str:
        """The name: a preset, or the file without its ending."""
        return self._loaded.name

    @property
    def toml(self) -> str:
        """The scenario as TOML, every default written out."""
        return self._loaded.toml

    def play(self, progress: Progress | None) -> Result:
        """Simulate as `simulate` does, but without a bar and without a warning."""
        return Result(self._loaded.simulate(None if progress is None else _in_seconds(progress)))

    @property
    def key(self) -> str:
        """The name under which a sweep stores it: a hash of all settings, the seed and Fanin's version."""
        return self._loaded.key

    @property
    def seed(self) -> int:
        """The seed of its random streams, `run.seed`."""
        return self._loaded.seed

    @cached_property
    def settings(self) -> Settings:
        """Every setting, defaults included, as dictionaries that cannot be changed; quantities are texts."""
        settings: Settings = _frozen(tomllib.loads(self._loaded.toml))
        return settings

    def replace(
        self, set: Mapping[str, Setting] | None = None, /, **sections: Mapping[str, Setting]
    ) -> "Scenario":
        """Return a scenario with other settings, given by dotted keys or section by section.

        Defaults that follow a setting follow its new value. Raise as `load`, and `ValueError` where the
        scenario's file has changed since it was loaded.

        >>> incast = Scenario.load("incast")
        >>> incast.replace({"tor.buffer": "1 MB"}) == incast.replace(tor={"buffer": "1 MB"})
        True
        """
        if set is not None:
            check_settings("set", set)
        changes = dict(set or {})
        for section, value in sections.items():
            changes.update(_dotted(section, value))
        self.assert_unchanged()
        return Scenario._checked(self._source, self._sets + _sets(changes))

    def replace_each(self, changes: Iterable[Mapping[str, Setting]]) -> list["Scenario"]:
        """Return a scenario for each of many changes by dotted keys, as `replace` does one by one.

        The scenario's file is compared before the first and after the last one, not each time.
        """
        self.assert_unchanged()
        replaced = [Scenario._checked(self._source, self._sets + _sets(one)) for one in changes]
        self.assert_unchanged()
        return replaced

    def assert_unchanged(self) -> None:
        """Raise `ValueError` where the file, or its file of sizes, has changed since it was loaded."""
        if isinstance(self._source, str) and _load(self._source, self._sets).key != self.key:
            raise ValueError(
                f"{self._source} or a file it names has changed since it was loaded; load it again"
            )

    def resolved(self) -> str:
        """Return the scenario as TOML, every default written out, each line with its origin."""
        return self._loaded.resolved

    def plan(
        self, *, quantile: str = "99.9 %", cost: bool = False, fragment_mean: str | None = None
    ) -> dict[str, Any]:
        """Return what arithmetic says, as the summary that `fanin plan --json -` prints.

        `quantile` is the share of the time for which a buffer has to be large enough. `cost` asks for cost
        and space. `fragment_mean` is the fragment size where the scenario takes sizes from a file.

        >>> Scenario.load("thesis-a-1000hz").plan()["plan"]["verdict"]["loses_frames"]
        True
        """
        check_text("quantile", quantile, 'a text such as "99.9 %"')
        if fragment_mean is not None:
            check_text("fragment_mean", fragment_mean, 'a text with a unit, such as "1.1 kB"')
        mean = None if fragment_mean is None else units.bytes(fragment_mean)
        summary: dict[str, Any] = json.loads(self._loaded.plan(units.ratio(quantile), cost, mean))
        return summary

    def simulate(
        self,
        *,
        seed: int | None = None,
        duration: str | None = None,
        progress: bool | Progress | None = None,
    ) -> Result:
        """Play the scenario packet by packet, as `fanin sim` does; one seed gives one result, to the bit.

        `seed` and `duration` stand for `run.seed` and `run.duration`. `progress` shows a bar in a terminal or
        a notebook unless it is False. If it is a function, it is called with the simulated time and its end,
        both in seconds. The last call has the end of a complete simulation. Other threads of Python go on
        meanwhile. Ctrl-C and an exception in `progress` end the simulation and are raised here. Warn where
        nothing moves any more before the end. Raise `ValueError` for scenarios that are not simulated.

        >>> result = Scenario.load("incast").simulate(seed=3, duration="50 ms", progress=False)
        >>> result.summary["seed"], result.end
        (3, 'complete')
        """
        scenario = self
        changes: dict[str, Setting] = {}
        if seed is not None:
            changes["run.seed"] = checked_seed(seed)
        if duration is not None:
            check_text("duration", duration, _DURATION)
            changes["run.duration"] = duration
        if changes:
            scenario = self.replace(changes)
        update, close = bar(progress, self.name)
        try:
            result = scenario.play(update)
        finally:
            close()
        if result.diagnosis is not None:
            warnings.warn(result.diagnosis, RunWarning, stacklevel=2)
        return result

    def run(
        self,
        *,
        seed: int | None = None,
        duration: str | None = None,
        place: str = "namespaces",
        out: str | os.PathLike[str] | None = None,
        command: str | os.PathLike[str] | None = None,
    ) -> Result:
        """Run the scenario for real on this machine, as `fanin run` does, and return the result.

        `place` is `namespaces`, `loopback`, or `auto`: namespaces where they are possible. In `namespaces`
        each host is a network namespace, which needs root. In `loopback` all processes are on 127.0.0.1,
        where no network is measured. The files are in `out`, by default a temporary folder, which stays.
        `seed` and `duration` are as in `simulate`.

        The command `fanin` runs as a process; `command` is its path, or FANIN_BIN, or it is on the PATH. Warn
        where events were lost or this machine was the bottleneck. Raise `FileNotFoundError` without the
        command, `PermissionError` without privileges, `ValueError` for what does not run live, and
        `RuntimeError` for other failures. Ctrl-C ends it; what was measured is in `out`.
        """
        if duration is not None:
            check_text("duration", duration, _DURATION)
        self.assert_unchanged()
        sets = () if duration is None else _sets({"run.duration": duration})
        return run(self._source, (*self._sets, *sets), seed, out, place, command)

    def advise(
        self,
        *,
        subject: str | Sequence[str] = (),
        only: str | Sequence[str] = (),
        seeds: int = 1,
        catalogue: str | os.PathLike[str] | None = None,
        measured: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        out: str | os.PathLike[str] | None = None,
        command: str | os.PathLike[str] | None = None,
    ) -> Advice:
        """Find which buffers, settings, techniques and switches do, as `fanin advise` does by simulation.

        `subject` holds constraints that each answer must meet, by default ``drops=0``. `only` names parts:
        `buffers`, `laboratory`, `ranges`, `techniques`, `gear`. `catalogue` is a file of switches to judge,
        `measured` holds folders of results from a laboratory, `out` is a folder for the simulations.
        `command` and errors are as in `run`.
        """
        self.assert_unchanged()
        return advise(self._source, self._sets, subject, only, seeds, catalogue, measured, out, command)


def _in_seconds(update: Progress) -> Progress:
    return lambda now, end: update(now / 1e12, end / 1e12)


def _load(source: str | tuple[str, str], sets: tuple[str, ...]) -> _fanin.LoadedScenario:
    if isinstance(source, str):
        return _fanin.load_scenario(source, list(sets))
    return _fanin.load_scenario_text(*source, list(sets))


def _restore(name: str, toml: str, source: str | tuple[str, str], sets: tuple[str, ...]) -> Scenario:
    return Scenario(_fanin.load_scenario_text(name, toml, []), source, sets)
