"""What the compiled half of the package offers; use it through `fanin`."""

from typing import Final

VERSION: Final[str]

class ScenarioError(ValueError):
    """A scenario is wrong; `args` holds the text and the fields of each problem."""

class LoadedScenario:
    """A scenario that has passed every check."""

    @property
    def name(self) -> str:
        """What it is called."""
    @property
    def hash(self) -> str:
        """The fingerprint of its settings."""
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

def load_scenario(source: str, sets: list[str]) -> LoadedScenario:
    """Load a file or preset with `KEY=VALUE` settings."""

def load_scenario_text(name: str, text: str, sets: list[str]) -> LoadedScenario:
    """As `load_scenario`, from text that is not in a file."""

def presets() -> list[str]:
    """Return the names of the scenarios that ship with the package."""

def parse_quantity(name: str, text: str) -> int:
    """Return the whole number of base units that a text stands for."""

def format_quantity(name: str, value: int) -> str:
    """Return the shortest text that stands for a whole number of base units."""
