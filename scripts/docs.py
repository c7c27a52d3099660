"""Writes the pages under docs/ that are made from the code; with `--check`, says which of them are stale.

The command is taken from $FANIN_BIN, or built.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def fanin(*arguments: str) -> str:
    """Return what the command prints."""
    binary = os.environ.get("FANIN_BIN")
    command = [binary] if binary else ["cargo", "run", "--quiet", "--package", "fanin-cli", "--"]
    # A terminal's width must not leak into a page.
    environment = os.environ | {"COLUMNS": "100"}
    run = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return run.stdout


def commands(path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Walk all commands, each with its help."""
    text = fanin(*path, "--help")
    yield path, text
    _, found, rest = text.partition("\nCommands:\n")
    for line in rest.split("\n\n")[0].splitlines() if found else ():
        # A wrapped description goes on further to the right than the names stand.
        name = line[2:].split(" ")[0]
        if name and name != "help":
            yield from commands((*path, name))


def command_page() -> str:
    """Return the reference of the command line."""
    parts = ["# Commands\n\nGenerated from `--help` by `make docs`; do not edit.\n"]
    for path, text in commands():
        parts.append(f"## {' '.join(('fanin', *path))}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


def arrows() -> str:
    """Return the table of dependencies between the crates, each after those that it uses."""
    command = ("cargo", "metadata", "--format-version=1", "--no-deps", "--locked")
    text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    uses = {
        package["name"]: {
            dependency["name"]
            for dependency in package["dependencies"]
            if dependency["name"].startswith("fanin-") and dependency["kind"] != "dev"
        }
        for package in json.loads(text)["packages"]
    }
    rows: dict[str, list[str]] = {}
    while len(rows) < len(uses):
        ready = sorted(name for name, others in uses.items() if name not in rows and others <= rows.keys())
        if not ready:
            sys.exit(f"these crates depend on each other: {sorted(uses.keys() - rows.keys())}")
        rows |= {name: [other for other in rows if other in uses[name]] for name in ready}
    lines = ["| crate | uses |", "|---|---|"]
    for name, others in rows.items():
        used = ", ".join(f"`{other.removeprefix('fanin-')}`" for other in others)
        lines.append(f"| `{name.removeprefix('fanin-')}` | {used or 'nothing'} |")
    return "\n".join(lines)


def architecture() -> str:
    """Return the map of the house with its table of dependencies as it is now."""
    text = (DOCS / "ARCHITECTURE.md").read_text()
    begin, end = "<!-- generated: arrows -->\n", "\n<!-- end -->"
    if begin not in text:
        sys.exit(f"docs/ARCHITECTURE.md has no line {begin.strip()!r}")
    return re.sub(f"(?<={begin}).*?(?={end})", lambda _: arrows(), text, flags=re.DOTALL)


PAGES: dict[str, Callable[[], str]] = {
    "ARCHITECTURE.md": architecture,
    "commands.md": command_page,
    "scenario.md": lambda: fanin("scenario", "reference"),
    "scenario.schema.json": lambda: fanin("scenario", "schema"),
    "switch-api.json": lambda: fanin("switch", "api"),
}


def main(arguments: Sequence[str]) -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a page is stale")
    options = parser.parse_args(arguments)
    stale = []
    for name, make in PAGES.items():
        path = DOCS / name
        text = make()
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not options.check:
            path.write_text(text)
            print(f"wrote docs/{name}")
    if options.check and stale:
        print("stale, run `make docs`: " + ", ".join(f"docs/{name}" for name in stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
