"""Every example in the documents runs, and the picture shows only commands that exist."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pictures
import pytest

import fanin

ROOT = Path(__file__).resolve().parents[2]
# `fanin …` in running text, `$ fanin …` in a block, and the example of each command's help.
EXAMPLES = (
    re.compile(r"`(fanin [^`\n]+)`"),
    re.compile(r"^ *\$ (fanin .+)$", re.MULTILINE),
    re.compile(r"^Example: (fanin .+)$", re.MULTILINE),
)
# A word that stands for something else, as in `fanin plan SCENARIO` or `fanin man <name>`.
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|<\w+>|…|\.\.\.")
# A command by its name, with an option at most: `fanin run --metrics`. It stands for no whole command line.
COMMAND_NAME = re.compile(r"fanin \w+(?: --\w+)?")
EXAMPLE_SECONDS_MAX = 120
DOCUMENTS = (
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/CONTRIBUTING.md",
    "docs/commands.md",
    "docs/first-scenario.md",
    "docs/tutorial.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "howto").glob("*.md")),
)
# The pages whose scenarios others name.
GUIDES = ("docs/first-scenario.md", "docs/tutorial.md")
# A file that a document asks its reader to save, named in its first line or in the sentence before it.
SAVED = re.compile(r"^```toml\n# ([\w-]+\.toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\bSave this as `([\w.-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command that goes on in the next line.
CONTINUED = re.compile(r"\\\n\s*")
BLOCK = re.compile(r"^( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """Return every example with the document it stands in."""
    found = []
    for document in DOCUMENTS:
        text = CONTINUED.sub("", (ROOT / document).read_text())
        for pattern in EXAMPLES:
            for command in pattern.findall(text):
                if pattern is EXAMPLES[0] and COMMAND_NAME.fullmatch(command):
                    continue
                if not PLACEHOLDER.search(command) and (document, command) not in found:
                    found.append((document, command))
    return found


def saved(*documents: str) -> dict[str, str]:
    """Return the files that documents ask their readers to save."""
    found: dict[str, str] = {}
    for document in documents:
        text = (ROOT / document).read_text()
        found |= dict(SAVED.findall(text)) | dict(NAMED.findall(text))
    return found


def sessions(document: str) -> list[list[tuple[str, list[str]]]]:
    """Return the blocks of a terminal, each command with the lines of output that the document shows."""
    found = []
    for indent, block in BLOCK.findall(CONTINUED.sub("", (ROOT / document).read_text())):
        session: list[tuple[str, list[str]]] = []
        for line in (line.removeprefix(indent) for line in block.splitlines()):
            if line.startswith("$ "):
                session.append((line.removeprefix("$ "), []))
            elif line:
                session[-1][1].append(line)
        found.append(session)
    return found


def run(command: str, folder: Path, binary: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a reader's shell would, but in an empty home."""
    environment = os.environ | {
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COLUMNS": "100",
    }
    for name in re.findall(r"> (~?[\w./-]+)/[\w.-]+$", command):
        Path(name.replace("~", str(folder))).mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=EXAMPLE_SECONDS_MAX,
        check=False,
    )


ONE_BY_ONE = [(document, command) for document, command in examples() if not sessions(document)]


@pytest.mark.parametrize(("document", "command"), ONE_BY_ONE)
def test_an_example_runs(document: str, command: str, binary: Path, tmp_path: Path) -> None:
    assert shlex.split(command)[0] == binary.name
    for name, text in saved(*GUIDES).items():
        (tmp_path / name).write_text(text)
    result = run(command, tmp_path, binary)
    assert result.returncode == 0, (
        f"{document} shows {command!r}, which ends with {result.returncode}: {result.stderr}"
    )


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if sessions(name)])
def test_a_session_prints_what_the_page_shows(document: str, binary: Path, tmp_path: Path) -> None:
    for name, text in saved(*GUIDES, document).items():
        (tmp_path / name).write_text(text)
    shown = [step for session in sessions(document) for step in session]
    known = {command for command, _ in shown}
    rest: list[tuple[str, list[str]]] = [
        (command, []) for page, command in examples() if page == document and command not in known
    ]
    for command, lines in [*shown, *rest]:
        result = run(command, tmp_path, binary)
        assert result.returncode == 0, f"{document} shows {command!r}: {result.stderr}"
        printed = result.stdout.splitlines()
        missing = [line for line in lines if line not in printed]
        assert not missing, f"{document} shows lines that {command!r} does not print now: {missing}"


def test_the_scenarios_of_the_guides_are_sound() -> None:
    files = saved(*GUIDES)
    for name, text in files.items():
        assert fanin.Scenario.load_text(name, text).settings["title"]
    assert set(files) == {"mine.toml", "variation.toml", "rack.toml"}


def test_the_recording_shows_what_its_commands_print(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANIN_BIN", str(binary))
    kept = (pictures.PICTURES / "recording.txt").read_text()
    assert pictures.play() == kept, "run `python scripts/pictures.py recording`"


@pytest.mark.parametrize("curve", pictures.CURVES)
def test_the_cliff_is_where_the_picture_shows_it(
    curve: str, binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANIN_BIN", str(binary))
    rows = pictures.sweep(pictures.CURVES[curve][2], tmp_path / "out", "workload.senders=8,9", 1)
    kept = [tuple(row.values()) for row in pictures.read_cliff()]
    assert all((curve, *row) in kept for row in rows), "run `python scripts/pictures.py cliff`"


def test_the_picture_draws_as_planned_what_is_not_built(root: Path, binary: Path) -> None:
    picture = (root / "docs" / "pictures" / "fan-in.svg").read_text()
    boxes = re.findall(r'<rect class="box( planned)?"[^>]*/>\s*<text class="code"[^>]*>fanin (\w+)<', picture)
    assert {name for _, name in boxes} == {"plan", "sim", "run", "report"}
    for planned, name in boxes:
        exists = subprocess.run([binary, name, "--help"], capture_output=True, check=False).returncode == 0
        assert exists != bool(planned), f"fanin {name}: change the picture's class 'planned'"
