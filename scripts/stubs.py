"""Writes the stubs of the extension module from the module; with `--check`, says whether they are stale.

pyo3 leaves names, signatures, types and documentation in a build with `experimental-inspect`, and maturin
reads them. What pyo3 does not know is added here: each edit has to fit once.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUBS = ROOT / "python" / "fanin" / "_fanin.pyi"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()

# The same module as in pyproject.toml, without `strip`, which takes away what maturin reads.
PROJECT = f"""\
[build-system]
requires = ["maturin>=1.16,<2"]
build-backend = "maturin"

[project]
name = "fanin"
dynamic = ["version"]

[tool.maturin]
manifest-path = "{ROOT / "crates" / "python" / "Cargo.toml"}"
module-name = "fanin._fanin"
"""

# Texts of the generated stub, and their replacements.
EDITS = (
    # An exception of `create_exception!` leaves nothing, so that the module counts as incomplete.
    (
        "\ndef __getattr__(name: str) -> Incomplete: ...\n",
        '''
class ScenarioError(ValueError):
    """A scenario is wrong; printed, it shows each problem with its line and a caret."""

    fields: list[tuple[str, tuple[str, int, int] | None, list[str]]]
''',
    ),
    ("from _typeshed import Incomplete, SupportsGetItem\n", "from _typeshed import SupportsGetItem\n"),
    # `types` has it from Python 3.13 on.
    ("from types import CapsuleType\n", "from typing_extensions import CapsuleType\n"),
    # A method of Python's own takes no signature in Rust.
    ("def __getitem__(self, column: Any, /) -> list:", "def __getitem__(self, column: str, /) -> list[Any]:"),
    ("def __next__(self, /) -> dict:", "def __next__(self, /) -> dict[str, Any]:"),
    ("def units(self, /) -> dict:", "def units(self, /) -> dict[str, str]:"),
    # Signatures that Rust gives as text name it.
    ("from os import PathLike\n", "from collections.abc import Callable\nfrom os import PathLike\n"),
)


def generate() -> str:
    """Return the stubs of the present sources."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text(PROJECT)
        forget_library()
        command = ["generate-stubs", "--locked", "--quiet", "--features", "pyo3/experimental-inspect"]
        subprocess.run(
            [sys.executable, "-m", "maturin", *command, "--target-dir", str(TARGET), "--out", str(folder)],
            cwd=folder,
            check=True,
        )
        forget_library()
        text = (folder / "_fanin" / "__init__.pyi").read_text()
    for found, meant in EDITS:
        if text.count(found) != 1:
            raise SystemExit(f"stubs: {found!r} is there {text.count(found)} times, not once")
        text = text.replace(found, meant)
    text = re.sub(r'"""\n *(.*?)\n *"""', one_line, text, flags=re.DOTALL)
    # The module lists its names, in the order of ruff.
    names = re.findall(r"^(?:class|def)? ?(\w+)(?:: Final|\(|:$)", text, re.MULTILINE)
    names.sort(key=lambda name: (not name.isupper(), name[0].islower(), name))
    listed = "".join(f"    {name!r},\n" for name in names)
    return tidy(text.replace("\n\nVERSION", f"\n\n__all__ = [\n{listed}]\n\nVERSION", 1))


def one_line(documentation: re.Match[str]) -> str:
    """Return documentation of one line on one line."""
    return documentation[0] if "\n" in documentation[1] else f'"""{documentation[1]}"""'


def forget_library() -> None:
    """Remove the built module: cargo would take one with other features for what it is asked for."""
    for folder in ("debug", "debug/deps"):
        for path in (TARGET / folder).glob("*_fanin.*"):
            path.unlink()


def tidy(text: str) -> str:
    """Return stubs as ruff formats them, with types that Rust gives as text no longer in quotes."""
    name = ["--stdin-filename", str(STUBS), "-"]
    fix = ["check", "--quiet", "--fix-only", "--select", "UP037,I", "--no-cache", *name]
    for command in (fix, ["format", "--quiet", "--no-cache", *name]):
        run = [sys.executable, "-m", "ruff", *command]
        text = subprocess.run(run, input=text, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return text


def main(arguments: Sequence[str]) -> int:
    """Write the stubs, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where they are stale")
    options = parser.parse_args(arguments)
    text = generate()
    before = STUBS.read_text()
    if not options.check:
        STUBS.write_text(text)
    elif text != before:
        changes = difflib.unified_diff(
            before.splitlines(), text.splitlines(), "there", "generated", lineterm=""
        )
        print("\n".join(changes))
        print(f"{STUBS.relative_to(ROOT)} is stale: run scripts/stubs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
