"""What the compiled half of the package offers; use it through `fanin`."""

from typing import Final

VERSION: Final[str]

def parse_quantity(name: str, text: str) -> int:
    """Return the whole number of base units that a text stands for."""

def format_quantity(name: str, value: int) -> str:
    """Return the shortest text that stands for a whole number of base units."""
