"""The compiled half of the Python package."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, Final, SupportsFloat, SupportsIndex, final

from _typeshed import SupportsGetItem
from typing_extensions import CapsuleType

__all__ = [
    "VERSION",
    "LoadedResult",
    "LoadedScenario",
    "RecordTable",
    "RowIterator",
    "ScenarioError",
    "TunedRange",
    "TuningGoal",
    "figure_of",
    "figure_unit",
    "format_quantity",
    "import_text",
    "is_clearly_worse",
    "is_stored",
    "load_result",
    "load_scenario",
    "load_scenario_text",
    "mean_interval",
    "parse_quantity",
    "presets",
]

VERSION: Final[str]
"""The version of the package and of the crates in it."""

@final
class LoadedResult:
    """A result; its tables are read when they are asked for."""
    @property
    def diagnosis(self, /) -> str | None:
        """The waiting hosts and their reasons, if the run stalled."""
    @property
    def end(self, /) -> str:
        """`complete`, `stopped` or `stalled`; empty if unknown."""
    @property
    def headline(self, /) -> tuple[str, str, str]:
        """The verdict: `good`, `bad` or `open`, a few words, and the figures behind it as HTML."""
    @property
    def label(self, /) -> str:
        """The name of the result among several."""
    def page(self, /) -> str:
        """The page as one HTML document."""
    @property
    def scenario(self, /) -> str | None:
        """The resolved scenario as TOML, if known."""
    @property
    def summary(self, /) -> str:
        """The summary as JSON."""
    def table(self, /, name: str) -> RecordTable:
        """One of the tables, by name."""
    def write(self, /, folder: str | PathLike[str]) -> list[Path]:
        """Writes the command's files of `--out`, and returns their paths."""
    def write_once(self, /, root: str | PathLike[str], name: str) -> bool:
        """Writes the result into the folder `name` of `root`, whole or not at all; returns true if it is new."""
    def write_trace(self, /, path: str | PathLike[str]) -> None:
        """Writes events, ports, goodput and the latest event as a trace for Perfetto."""

@final
class LoadedScenario:
    """A scenario that has passed every check."""
    @property
    def hash(self, /) -> str:
        """The fingerprint of its settings."""
    @property
    def key(self, /) -> str:
        """The name under which a simulation of it is stored."""
    @property
    def name(self, /) -> str:
        """The name: a preset, or the file without its ending."""
    def plan(self, /, quantile: SupportsIndex, cost: bool, fragment_mean: SupportsIndex | None) -> str:
        """The planner's summary as JSON."""
    @property
    def resolved(self, /) -> str:
        """The scenario as TOML, every default written out, each line with its origin."""
    @property
    def seed(self, /) -> int:
        """The seed of its random streams."""
    def simulate(self, /, progress: Callable[[int, int], object] | None = None) -> LoadedResult:
        """Plays the scenario; `progress(now, end)` is called from time to time with picoseconds of simulated time."""
    @property
    def toml(self, /) -> str:
        """The same without origins."""
    @property
    def warnings(self, /) -> list[tuple[str, tuple[str, int, int] | None, list[str]]]:
        """Warnings: settings that are valid but probably not meant."""

@final
class RecordTable:
    """A table of a result, or one made of columns; Arrow batches are made when a reader asks for them."""
    def __arrow_c_schema__(self, /) -> CapsuleType:
        """The names, types and units of the columns."""
    def __arrow_c_stream__(self, /, requested_schema: Any | None = None) -> CapsuleType:
        """
        The table as an Arrow stream, for polars, pyarrow, pandas, DuckDB and others; the wish for another schema is not
        granted, which the interface allows.
        """
    def __contains__(self, column: Any, /) -> bool:
        """True if the table has a column of this name."""
    def __getitem__(self, column: str, /) -> list[Any]:
        """The values of one column; None for absent ones. A column has a name and no number; rows come by iteration."""
    def __iter__(self, /) -> RowIterator:
        """The rows, each as a dictionary from the names of the columns; None for absent values."""
    def __len__(self, /) -> int:
        """The number of rows."""
    def __repr__(self, /) -> str:
        """The number of rows and the columns, on one line."""
    def _repr_html_(self, /) -> str:
        """The first rows as HTML, for a notebook."""
    @property
    def columns(self, /) -> list[str]:
        """The names of the columns."""
    @staticmethod
    def of_columns(columns: dict[str, list[object]], units: dict[str, str]) -> RecordTable:
        """Makes a table of columns, each a list of numbers, texts and None of one length, and of their units."""
    @property
    def units(self, /) -> dict[str, str]:
        """The unit of each column that has one, in the order of the columns."""

@final
class RowIterator:
    """Goes through the rows of a table."""
    def __iter__(self, /) -> RowIterator:
        """The iterator itself, as Python wants it."""
    def __next__(self, /) -> dict[str, Any]:
        """The next row."""

@final
class TunedRange:
    """A numeric setting and its range, in base units."""
    def __new__(cls, /, text: str, is_objective: bool, toml: str) -> TunedRange:
        """Reads `KEY` or `KEY=LOW..HIGH` against a scenario's TOML; a key that it lacks raises `KeyError`."""
    def at(self, /, share: SupportsFloat | SupportsIndex) -> int:
        """The value at a share of the range, on the scale of the search."""
    @property
    def high(self, /) -> int:
        """The upper end."""
    @property
    def low(self, /) -> int:
        """The lower end."""
    def narrowed(self, /, takes: Callable[[int], bool]) -> TunedRange:
        """The same with the ends moved inwards until `takes` returns True for them."""
    def rounded(self, /, value: SupportsIndex) -> int:
        """The value with three digits that is nearest to another one."""
    @property
    def start(self, /) -> int:
        """The scenario's own value, held within the ends."""
    def text(self, /, value: SupportsIndex) -> str:
        """The text of a value, as a scenario has it."""
    @property
    def unit(self, /) -> str | None:
        """The base unit, or None for counts."""

@final
class TuningGoal:
    """An objective with its constraints."""
    def __new__(
        cls, /, objective: str, is_maximised: bool, subject: SupportsGetItem[int, str]
    ) -> TuningGoal: ...
    @property
    def constraints(self, /) -> list[str]:
        """The constraints as they were written."""
    def judge(self, /, result: LoadedResult) -> tuple[float | None, list[float | None]]:
        """
        The objective's figure of a result, and the logarithm of how far it is from each constraint; absent figures
        are None.
        """
    @property
    def key(self, /) -> str | None:
        """The tuned setting that is the objective, if one is."""
    @property
    def name(self, /) -> str:
        """The objective's name."""

def figure_of(name: str, result: LoadedResult) -> float | None:
    """A figure of a result by its short name, or None where it does not apply; an unknown name raises `ValueError`."""

def figure_unit(name: str) -> str | None:
    """The unit of the figure with this short name, or None for counts and factors; an unknown name raises `ValueError`."""

def format_quantity(name: str, value: SupportsIndex) -> str:
    """The shortest text that stands for a whole number of base units."""

def import_text(name: str, text: str, collectors: SupportsGetItem[int, str], extends: str | None) -> str:
    """The scenario that a topology of another tool stands for, as TOML; `text` is its file."""

def is_clearly_worse(
    value: SupportsFloat | SupportsIndex,
    of_best: SupportsFloat | SupportsIndex,
    seeds_of_best: SupportsGetItem[int, SupportsFloat | SupportsIndex],
) -> bool:
    """True if a value is clearly worse than the best point's on the same seed, by the rule of `fanin tune`."""

def is_stored(root: str | PathLike[str], name: str) -> bool:
    """True if `root` holds a whole result of this name."""

def load_result(path: str | PathLike[str]) -> LoadedResult:
    """Reads the result in a folder, or a summary alone; tables follow when they are asked for."""

def load_scenario(source: str, sets: SupportsGetItem[int, str]) -> LoadedScenario:
    """Loads a file or preset with `KEY=VALUE` settings; raises `ScenarioError(text)` with the problems in its `fields`."""

def load_scenario_text(name: str, text: str, sets: SupportsGetItem[int, str]) -> LoadedScenario:
    """Loads as `load_scenario` does, from text without a file; `extends` finds presets only."""

def mean_interval(
    values: SupportsGetItem[int, SupportsFloat | SupportsIndex],
) -> tuple[float, float | None] | None:
    """The mean of values, and half the width of its interval of 95 % confidence (Student's t); None for a single value."""

def parse_quantity(name: str, text: str) -> int:
    """The whole number of base units that a text stands for."""

def presets() -> list[str]:
    """The names of the scenarios that ship with the package."""

class ScenarioError(ValueError):
    """A scenario is wrong; printed, it shows each problem with its line and a caret."""

    fields: list[tuple[str, tuple[str, int, int] | None, list[str]]]
