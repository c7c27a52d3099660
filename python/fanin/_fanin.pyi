"""What the compiled half of the package offers; use it through `fanin`."""

from collections.abc import Callable
from typing import Any, Final, final

__all__ = [
    "VERSION",
    "LoadedResult",
    "LoadedScenario",
    "RecordTable",
    "ScenarioError",
    "TunedRange",
    "TuningGoal",
    "check_figure",
    "figure_of",
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

class ScenarioError(ValueError):
    """A scenario is wrong; printed, it shows each problem with its line and a caret."""

    fields: list[tuple[str, tuple[str, int, int] | None, list[str]]]

@final
class RecordTable:
    """A table that polars, pyarrow, pandas and other readers of Arrow streams take."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream; the wish for another schema is not granted."""
    def __arrow_c_schema__(self) -> object:
        """Return the names, types and units of the columns."""
    def __len__(self) -> int:
        """Return the number of rows."""
    def __getitem__(self, column: str, /) -> list[Any]:
        """Return the values of a column; what is absent is None."""
    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    @property
    def units(self) -> dict[str, str]:
        """The unit of each column."""
    @staticmethod
    def of_columns(columns: dict[str, list[object]], units: dict[str, str]) -> RecordTable:
        """Return a table of columns, each of numbers, texts and None, with units."""

@final
class LoadedResult:
    """A result; tables are read when they are asked for."""

    @property
    def summary(self) -> str:
        """The summary as JSON."""
    @property
    def label(self) -> str:
        """Its name among several results."""
    @property
    def scenario(self) -> str | None:
        """The resolved scenario as TOML, where it is known."""
    @property
    def end(self) -> str:
        """`complete`, `stopped` or `stalled`; empty where that is not known."""
    @property
    def diagnosis(self) -> str | None:
        """The hosts that wait, and what for, where the run stalled."""
    @property
    def headline(self) -> tuple[str, str, str]:
        """The verdict: `good`, `bad` or `open`, a few words, and the figures behind it as HTML."""
    def table(self, name: str) -> RecordTable:
        """Return one of the tables, by name."""
    def page(self) -> str:
        """Return the page as one HTML document."""
    def write(self, folder: str) -> list[str]:
        """Write the files that the command writes with `--out`, and return their paths."""
    def write_trace(self, path: str) -> None:
        """Write events, ports, goodput and the latest event as a trace for Perfetto."""
    def write_once(self, root: str, name: str) -> bool:
        """Write the result into the folder `name` of `root`, whole or not at all; False if it was there."""

def is_stored(root: str, name: str) -> bool:
    """Return whether `root` holds a whole result of this name."""

def load_result(path: str) -> LoadedResult:
    """Load the result in a folder, or a summary alone."""

@final
class LoadedScenario:
    """A scenario that has passed every check."""

    @property
    def name(self) -> str:
        """What it is called."""
    @property
    def hash(self) -> str:
        """The fingerprint of its settings."""
    @property
    def key(self) -> str:
        """The name under which a simulation of it is stored."""
    @property
    def resolved(self) -> str:
        """The scenario as TOML, every default written out, each line with its origin."""
    @property
    def toml(self) -> str:
        """The same without origins."""
    @property
    def warnings(self) -> list[tuple[str, tuple[str, int, int] | None, list[str]]]:
        """What is not wrong but most likely not meant."""

    def plan(self, quantile: int, cost: bool, fragment_mean: int | None) -> str:
        """Return the planner's summary as JSON."""
    def simulate(self, progress: Callable[[int, int], object] | None = None) -> LoadedResult:
        """Play the scenario; `progress` is called with picoseconds of simulated time and their end."""

@final
class TuningGoal:
    """An objective with its constraints, in the words of `fanin tune`."""

    def __new__(cls, objective: str, is_maximised: bool, subject: list[str]) -> TuningGoal:
        """Read them; raise `ValueError` for what is not understood or cannot be met."""
    @property
    def name(self) -> str:
        """The objective's name."""
    @property
    def key(self) -> str | None:
        """The tuned setting that is the objective, if one is."""
    @property
    def constraints(self) -> list[str]:
        """The constraints as they were written."""
    def judge(self, result: LoadedResult) -> tuple[float | None, list[float | None]]:
        """Return the objective's figure, and how far each constraint is; None where a figure is absent."""

@final
class TunedRange:
    """A numeric setting and its range, in base units."""

    def __new__(cls, text: str, is_objective: bool, toml: str) -> TunedRange:
        """Read `KEY` or `KEY=LOW..HIGH` against a scenario's TOML; raise `KeyError` for an unknown key."""
    @property
    def low(self) -> int:
        """The lower end."""
    @property
    def high(self) -> int:
        """The upper end."""
    @property
    def start(self) -> int:
        """The scenario's own value, held within the ends."""
    def text(self, value: int) -> str:
        """Return the text of a value, as a scenario has it."""
    def rounded(self, value: int) -> int:
        """Return the nearest value with three digits."""
    def at(self, share: float) -> int:
        """Return the value at a share of the range."""
    def narrowed(self, takes: Callable[[int], bool]) -> TunedRange:
        """Return the same with the ends moved inwards until `takes` returns True for them."""

def check_figure(name: str) -> None:
    """Raise `ValueError` with all names unless a figure has this short name."""

def figure_of(name: str, result: LoadedResult) -> float | None:
    """Return a figure of a result by its short name; None where it does not apply."""

def is_clearly_worse(value: float, of_best: float, seeds_of_best: list[float]) -> bool:
    """Return whether a value is clearly worse than the best one on the same seed, as `fanin tune` judges."""

def mean_interval(values: list[float]) -> tuple[float, float | None] | None:
    """Return the mean, and half the width of its interval of 95 % confidence."""

def load_scenario(source: str, sets: list[str]) -> LoadedScenario:
    """Load a file or preset with `KEY=VALUE` settings."""

def load_scenario_text(name: str, text: str, sets: list[str]) -> LoadedScenario:
    """As `load_scenario`, from text that is not in a file."""

def import_text(name: str, text: str, collectors: list[str], extends: str | None) -> str:
    """Return the scenario that the text of another tool's file stands for, as TOML; raise `ValueError`."""

def presets() -> list[str]:
    """Return the names of the scenarios that ship with the package."""

def parse_quantity(name: str, text: str) -> int:
    """Return the whole number of base units that a text stands for."""

def format_quantity(name: str, value: int) -> str:
    """Return the shortest text that stands for a whole number of base units."""
