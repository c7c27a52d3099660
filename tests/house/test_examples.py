"""Every example in the documents runs, and the picture shows only commands that exist."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import fanin

# `fanin …` in running text, `$ fanin …` in a block, and the example of each command's help.
EXAMPLES = (
    re.compile(r"`(fanin [^`\n]+)`"),
    re.compile(r"^\$ (fanin .+)$", re.MULTILINE),
    re.compile(r"^Example: (fanin .+)$", re.MULTILINE),
)
# A word that stands for something else, as in `fanin plan SCENARIO` or `fanin man <name>`.
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|<\w+>|…|\.\.\.")
EXAMPLE_SECONDS_MAX = 120
DOCUMENTS = (
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/CONTRIBUTING.md",
    "docs/commands.md",
    "docs/first-scenario.md",
)
# A file that a document tells its reader to save, named in its first line.
SAVED = re.compile(r"^```toml\n# ([\w-]+\.toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TUTORIAL = "docs/first-scenario.md"


@pytest.fixture(scope="session")
def binary() -> Path:
    """Return the command, which `make test` has built."""
    path = os.environ.get("FANIN_BIN")
    assert path, "set FANIN_BIN to the fanin binary"
    return Path(path)


def examples() -> list[tuple[str, str]]:
    """Return every example with the document it stands in."""
    root = Path(__file__).resolve().parents[2]
    found = []
    for document in DOCUMENTS:
        text = (root / document).read_text()
        for pattern in EXAMPLES:
            for command in pattern.findall(text):
                if not PLACEHOLDER.search(command) and (document, command) not in found:
                    found.append((document, command))
    return found


@pytest.mark.parametrize(("document", "command"), examples())
def test_an_example_runs(document: str, command: str, root: Path, binary: Path, tmp_path: Path) -> None:
    for name, text in SAVED.findall((root / TUTORIAL).read_text()):
        (tmp_path / name).write_text(text)
    # A shell runs it as a reader would, but in an empty home.
    environment = os.environ | {
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "COLUMNS": "100",
    }
    for folder in re.findall(r"> (~?[\w./-]+)/[\w.-]+$", command):
        Path(folder.replace("~", str(tmp_path))).mkdir(parents=True, exist_ok=True)
    assert shlex.split(command)[0] == binary.name
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=EXAMPLE_SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, (
        f"{document} shows {command!r}, which ends with {run.returncode}: {run.stderr}"
    )


def test_the_scenarios_of_the_tutorial_are_sound(root: Path) -> None:
    saved = SAVED.findall((root / TUTORIAL).read_text())
    assert {name for name, _ in saved} >= {"mine.toml", "variation.toml"}
    for name, text in saved:
        assert fanin.Scenario.load_text(name, text).settings["title"]


def test_the_picture_draws_as_planned_what_is_not_built(root: Path, binary: Path) -> None:
    picture = (root / "docs" / "pictures" / "fan-in.svg").read_text()
    boxes = re.findall(r'<rect class="box( planned)?"[^>]*/>\s*<text class="code"[^>]*>fanin (\w+)<', picture)
    assert {name for _, name in boxes} == {"plan", "sim", "run", "report"}
    for planned, name in boxes:
        run = subprocess.run([binary, name, "--help"], capture_output=True, check=False)
        exists = run.returncode == 0
        assert exists != bool(planned), f"fanin {name}: change the picture's class 'planned'"
