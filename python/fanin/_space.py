"""Settings that a search or a sensitivity analysis varies: ranges of numbers, and choices of values."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fanin import _fanin
from fanin.scenario import Scenario, ScenarioError, ScenarioWarning, Setting, _toml

#: A range such as "60..1200", None for the default range, or the values to choose from.
Values = str | Sequence[Setting] | None


@dataclass(frozen=True)
class Range:
    """A numeric setting between two ends, on a logarithmic scale; values are whole numbers of base units."""

    key: str
    numbers: _fanin.TunedRange

    @property
    def text(self) -> str:
        """The range as it would be written."""
        return f"{self.numbers.text(self.numbers.low)}..{self.numbers.text(self.numbers.high)}"

    def at(self, share: float) -> Setting:
        """Return the setting at a share of the range, from 0 to 1."""
        return self.setting(self.numbers.at(share))

    def rounded(self, value: int) -> int:
        """Return the nearest value with three digits; the scenario's own stays as it is."""
        return value if value == self.numbers.start else self.numbers.rounded(value)

    def setting(self, value: int) -> Setting:
        """Return a value as a scenario has it."""
        text = self.numbers.text(value)
        return int(text) if text.isdigit() else text


@dataclass(frozen=True)
class Choice:
    """A setting with a few values to choose from."""

    key: str
    values: tuple[Setting, ...]

    @property
    def text(self) -> str:
        """The values as they would be written."""
        return "[" + ", ".join(_toml(value) for value in self.values) + "]"

    def at(self, share: float) -> Setting:
        """Return the value at a share of the list, from 0 to 1."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


def space(
    scenario: Scenario, over: Mapping[str, Values], objective: str | None = None
) -> tuple[Range | Choice, ...]:
    """Check settings against the scenario; each end and each choice has to be one that it takes.

    `objective` is a setting that is the objective: it has a wider default range. Raise `ScenarioError` for an
    unknown key or a value that the scenario refuses, and `ValueError` or `TypeError` for what is no range.
    """
    wanted = dict(over)
    if objective is not None:
        wanted.setdefault(objective, None)
    if not wanted:
        raise ValueError('nothing to vary: name settings, for example over={"shaping.credits": "60..1200"}')
    return tuple(_axis(scenario, key, values, key == objective) for key, values in wanted.items())


def _axis(scenario: Scenario, key: str, values: Values, is_objective: bool) -> Range | Choice:
    if values is None or isinstance(values, str):
        return _range(scenario, key, values, is_objective)
    if not isinstance(values, Sequence):
        raise TypeError(
            f'`{key}` wants a range such as "60..1200", a list of values, or None, not {values!r}'
        )
    if is_objective:
        raise ValueError(f"`{key}` is the objective, so it needs a range, not a list of values")
    if len({_toml(value) for value in values}) < 2:
        raise ValueError(f"`{key}` has fewer than two values to choose from")
    for value in values:
        # Warnings are for the first look at a scenario.
        scenario.replace({key: value})
    return Choice(key, tuple(values))


def _range(scenario: Scenario, key: str, text: str | None, is_objective: bool) -> Range:
    toml = scenario.toml
    try:
        if text is None:
            numbers = _fanin.TunedRange(key, is_objective, toml)
            return Range(key, numbers.narrowed(lambda value: _takes(scenario, key, numbers.text(value))))
        numbers = _fanin.TunedRange(f"{key}={text}", False, toml)
    except KeyError as error:
        # The scenario's own message knows the names that are alike.
        scenario.replace({key: 1})
        raise ValueError(error.args[0]) from None
    found = Range(key, numbers)
    for end in (numbers.low, numbers.high):
        scenario.replace({key: found.setting(end)})
    return found


def _takes(scenario: Scenario, key: str, text: str) -> bool:
    """Tell whether a scenario takes a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScenarioWarning)
        try:
            scenario.replace({key: int(text) if text.isdigit() else text})
        except ScenarioError:
            return False
    return True
