"""Exact quantities: text such as `"1.1 kB"` to whole numbers of a base unit, and back."""

from dataclasses import dataclass

from fanin import _fanin
from fanin._arguments import check_text


@dataclass(frozen=True)
class Quantity:
    """One kind of quantity; call it with a text to get an exact whole number.

    >>> bytes("64 KiB")
    65536
    >>> bytes.text(65_536)
    '64 KiB'
    """

    name: str
    base_unit: str

    def __call__(self, text: str) -> int:
        """Return how many base units `text` stands for; raise `ValueError` where it is not exact."""
        check_text("text", text, f'a text such as "{self.text(10**6)}"')
        return _fanin.parse_quantity(self.name, text)

    def text(self, value: int) -> str:
        """Return the shortest text that gives `value` back; raise `OverflowError` outside 0 to 2**64 - 1."""
        return _fanin.format_quantity(self.name, value)


bytes = Quantity("bytes", "byte")
duration = Quantity("duration", "picosecond")
frequency = Quantity("frequency", "millihertz")
packets = Quantity("packets", "packet")
rate = Quantity("rate", "bit per second")
ratio = Quantity("ratio", "part per million")
