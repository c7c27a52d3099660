"""Attributes that serve speed alone stay few: docs/engineering/simulator-speed.md has what they are worth.

`python tests/house/test_attributes.py` prints the number of each in each room.
"""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The rooms that a simulated frame passes.
ROOMS = ("sim", "tcp", "queueing")
ATTRIBUTES = {
    "inline(always)": re.compile(r"#\[inline\(always\)\]"),
    "prefetch": re.compile(r"prefetch"),
    "repr(align)": re.compile(r"repr\([^)]*\balign\("),
}
# The most of each: more need a measurement in the engineering notes.
MOST = {"inline(always)": 27, "prefetch": 0, "repr(align)": 1}


def attributes(source: str) -> Counter[str]:
    """Return how often a source has each attribute, comments left out."""
    source = re.sub(r"//.*", "", source)
    return Counter({name: len(rule.findall(source)) for name, rule in ATTRIBUTES.items()})


def counts() -> dict[str, Counter[str]]:
    """Return the number of each attribute in each room."""
    found: dict[str, Counter[str]] = {}
    for room in ROOMS:
        sources = (ROOT / "crates" / room / "src").rglob("*.rs")
        found[room] = sum((attributes(path.read_text()) for path in sources), Counter())
    return found


def test_attributes_are_few() -> None:
    found = sum(counts().values(), Counter())
    more = {name: found[name] for name, most in MOST.items() if found[name] > most}
    assert not more, f"measure these, record them in docs/engineering, and raise MOST: {more}"


def test_attributes_are_found() -> None:
    source = "#[inline(always)]\n#[repr(C, align(64))]\n// prefetch\nprefetch(x); // #[inline(always)]\n"
    assert attributes(source) == {"inline(always)": 1, "prefetch": 1, "repr(align)": 1}


if __name__ == "__main__":
    for room, found in counts().items():
        print(room, dict(found))
