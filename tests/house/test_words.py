"""Plain words: no line holds a phrase that docs/style.md rules out.

`python tests/house/test_words.py [ROOM]...` prints the lines that do.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# In a sentence, and as a word of a name.
WORDS = (
    *("nobody", "somebody", "anybody", "told", "lanes?", "troubles?", "doubtful", "ample", "calm(?:ly|er)?"),
    *("amiss", "foresight", "beside"),
)
PHRASES = (
    *(
        "as far as any",
        "those of (?:whom|which)",
        "whose time has come",
        "who looks",
        "so many as",
        "as much is",
    ),
    *("(?:of|by|for|to|with|from) whom",),
)
WORD = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(f'[{w[0]}{w[0].upper()}]{w[1:]}' for w in WORDS)})(?![a-z])")
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
OPENINGS = (
    "What",
    "Whose",
    "Who",
    "So many",
    "As many",
    "As much",
    "Whether",
    "Of which",
    "Of whom",
    "By which",
)
OPENING = re.compile(rf'^\s*(?://[/!]|""")\s?(?:{"|".join(OPENINGS)})\b')
# Generated from sources that are counted themselves, or the record of the past.
LEFT_OUT = frozenset(
    (
        *("CHANGELOG.md", "docs/commands.md", "docs/scenario.md", "docs/style.md"),
        *("tests/house/test_names.py", "tests/house/test_words.py"),
    )
)

# PCI Express has lanes.
FIELD_WORDS = {
    "crates/plan/src/bounds/host.rs": re.compile(r"\blanes?\b"),
    "crates/plan/tests/claims.rs": re.compile(r"\blane\b"),
}


def room(name: str) -> str:
    """Return the room of a file: a crate, a folder of tests, or a folder at the top."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in {"crates", "tests"} else parts[0]


def lines() -> Iterator[tuple[str, str, int, str]]:
    """Yield each line that breaks the rule: its room, file, number and text."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in sorted(names):
        path = ROOT / name
        if path.suffix not in {".rs", ".py", ".md", ".toml"} or name in LEFT_OUT or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if name in FIELD_WORDS:
                line = FIELD_WORDS[name].sub("", line)
            if WORD.search(line) or PHRASE.search(line) or OPENING.search(line):
                yield room(name), name, number, line.strip()


def test_words_are_plain() -> None:
    found = [f"{name}:{number}: {line}" for _, name, number, line in lines()]
    assert not found, "docs/style.md rules these out:\n" + "\n".join(found)


if __name__ == "__main__":
    for where, name, number, line in lines():
        if where in sys.argv[1:] or len(sys.argv) == 1:
            print(f"{name}:{number}: {line}")
