"""The glossary defines each term once, and has the terms of the commands' options."""

import re
from collections import Counter
from pathlib import Path

# Terms of commands, results and pages that a reader cannot know from elsewhere.
NEEDED = frozenset(
    (
        *("bracket", "clairvoyant schedule", "collapse", "gear", "headroom", "laboratory", "way", "worker"),
        *("bound", "ideal", "incast", "occurrence", "partition", "ring", "slowdown"),
    )
)


def terms(page: str) -> list[str]:
    """Return the terms of the glossary's tables; `XOFF, XON of a switch` are two terms of a switch."""
    found = []
    for cell in re.findall(r"^\| (?!term \|)([^|]*?) \|", page, re.MULTILINE):
        names, of, owner = cell.partition(" of ")
        found += [f"{name}{of}{owner}" for name in names.split(", ")]
    return found


def test_each_term_is_defined_once(root: Path) -> None:
    found = terms((root / "docs" / "glossary.md").read_text())
    assert len(found) > len(NEEDED)
    assert [term for term, count in Counter(found).items() if count > 1] == []
    assert sorted(NEEDED - set(found)) == []


def test_terms_that_are_defined_twice_are_found() -> None:
    page = "| term | meaning |\n|---|---|\n| XOFF, XON of a switch | a |\n| XOFF of the trigger | b |\n"
    assert terms(page) == ["XOFF of a switch", "XON of a switch", "XOFF of the trigger"]
