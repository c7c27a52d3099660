"""Settings that a search or a sensitivity analysis varies: ranges of numbers, and choices of values."""

import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fanin import _fanin
from fanin._seeds import sets_seed
from fanin.scenario import Scenario, ScenarioError, ScenarioWarning, Setting, _toml, plain

# More combinations than these are not tried for a value that the scenario refuses alone.
_COMPANIONS_MAX = 1000

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

    @property
    def ends(self) -> tuple[Setting, ...]:
        """The values that are checked: both ends."""
        return self.setting(self.numbers.low), self.setting(self.numbers.high)

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

    @property
    def ends(self) -> tuple[Setting, ...]:
        """The values that are checked: all of them."""
        return self.values

    def at(self, share: float) -> Setting:
        """Return the value at a share of the list, from 0 to 1."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


def space(
    scenario: Scenario, over: Mapping[str, Values], objective: str | None = None
) -> tuple[Range | Choice, ...]:
    """Check settings against the scenario; it has to take each end and each choice with some of the others.

    `objective` is a setting that is the objective: it has a wider default range. Raise `ScenarioError` for an
    unknown key or a value that the scenario refuses, and `ValueError` or `TypeError` for what is no range.
    """
    wanted = dict(over)
    if objective is not None:
        wanted.setdefault(objective, None)
    if not wanted:
        raise ValueError('nothing to vary: name settings, for example over={"shaping.credits": "60..1200"}')
    if sets_seed(wanted):
        raise ValueError(
            "`run.seed` is not varied here, as each point runs several seeds: choose them by `seeds`"
        )
    axes = tuple(_axis(scenario, key, values, key == objective) for key, values in wanted.items())
    for axis in axes:
        _check(scenario, axis, [other for other in axes if other is not axis])
    return axes


def _check(scenario: Scenario, axis: Range | Choice, others: Sequence[Range | Choice]) -> None:
    """Raise the scenario's error where it takes a value with none of the others' values."""
    for value in axis.ends:
        try:
            # Warnings are for the first look at a scenario.
            scenario.replace({axis.key: value})
        except ScenarioError:
            companions = itertools.islice(_companions(others), _COMPANIONS_MAX)
            if not any(_takes(scenario, {axis.key: value, **other}) for other in companions):
                raise


def _companions(others: Sequence[Range | Choice]) -> Iterator[dict[str, Setting]]:
    """Go through values of other settings: first of each alone, then of all together."""
    for other in others:
        yield from ({other.key: value} for value in other.ends)
    for values in itertools.product(*(other.ends for other in others)):
        yield dict(zip((other.key for other in others), values, strict=True))


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
    return Choice(key, tuple(map(plain, values)))


def _range(scenario: Scenario, key: str, text: str | None, is_objective: bool) -> Range:
    toml = scenario.toml
    try:
        if text is None:
            numbers = _fanin.TunedRange(key, is_objective, toml)
            own = Range(key, numbers)
            narrowed = numbers.narrowed(lambda value: _takes(scenario, {key: own.setting(value)}))
            return Range(key, narrowed)
        numbers = _fanin.TunedRange(f"{key}={text}", False, toml)
    except KeyError as error:
        # The scenario's own message knows the names that are alike.
        scenario.replace({key: 1})
        raise ValueError(error.args[0]) from None
    return Range(key, numbers)


def _takes(scenario: Scenario, settings: Mapping[str, Setting]) -> bool:
    """Return whether a scenario takes settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScenarioWarning)
        try:
            scenario.replace(settings)
        except ScenarioError:
            return False
    return True
