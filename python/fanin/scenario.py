"""Scenarios: what a system is and how it is used, loaded and checked as by the command `fanin`."""

import json
import os
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fanin import _fanin, units
from fanin._fanin import ScenarioError, presets

__all__ = ["Problem", "Scenario", "ScenarioError", "ScenarioWarning", "Setting", "presets", "problems"]

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
    return [_problem(*fields) for fields in error.args[1]]


def _problem(message: str, place: tuple[str, int, int] | None, help: list[str]) -> Problem:
    file, line, column = place or (None, None, None)
    return Problem(message, file, line, column, tuple(help))


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
    return repr(value)


def _sets(set: Mapping[str, Setting] | None) -> list[str]:
    return [f"{key}={_toml(value)}" for key, value in (set or {}).items()]


@dataclass(frozen=True)
class Scenario:
    """A scenario that has passed every check.

    >>> scenario = Scenario.load("incast", {"workload.senders": 32})
    >>> scenario.settings["workload"]["senders"]
    32
    """

    _loaded: _fanin.LoadedScenario

    @classmethod
    def load(cls, source: str | os.PathLike[str], set: Mapping[str, Setting] | None = None) -> "Scenario":
        """Load a file, or a preset by its name; `set` overrides settings by their dotted keys.

        Raise `ScenarioError` with every problem and its line. Warn where a setting has no effect.
        """
        return cls._checked(_fanin.load_scenario(os.fspath(source), _sets(set)))

    @classmethod
    def load_text(cls, name: str, text: str, set: Mapping[str, Setting] | None = None) -> "Scenario":
        """Load a scenario from text that is not in a file; `extends` in it finds presets only."""
        return cls._checked(_fanin.load_scenario_text(name, text, _sets(set)))

    @classmethod
    def _checked(cls, loaded: _fanin.LoadedScenario) -> "Scenario":
        for fields in loaded.warnings:
            warnings.warn(_problem(*fields).message, ScenarioWarning, stacklevel=3)
        return cls(loaded)

    @property
    def name(self) -> str:
        """The name: a preset, or the file without its ending."""
        return self._loaded.name

    @property
    def hash(self) -> str:
        """A fingerprint: equal for equal settings, whatever the files."""
        return self._loaded.hash

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, defaults included, as nested dictionaries; quantities are texts."""
        return tomllib.loads(self._loaded.toml)

    def resolved(self) -> str:
        """Return the scenario as TOML, every default written out, each line with its origin."""
        return self._loaded.resolved

    def plan(
        self, *, quantile: str = "99.9 %", cost: bool = False, fragment_mean: str | None = None
    ) -> dict[str, Any]:
        """Return what arithmetic says, as the summary that `fanin plan --json -` prints.

        `quantile` is the share of the time that a buffer has to be large enough for, `cost` asks for cost and
        space, and `fragment_mean` stands in where the scenario takes fragment sizes from a file.

        >>> Scenario.load("thesis-a-1000hz").plan()["plan"]["verdict"]["loses_frames"]
        True
        """
        mean = None if fragment_mean is None else units.bytes(fragment_mean)
        summary: dict[str, Any] = json.loads(self._loaded.plan(units.ratio(quantile), cost, mean))
        return summary
