"""Every command of README.md runs in continuous integration: as an example, here, or where this file says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_examples import examples

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
# Code in README.md that is no command: words, a file, an option, and a line of Python.
NO_COMMANDS = {"--metrics", "gcc", "git", "import fanin", "incast", "plan", "sim", "ten/report.html"}
# Both build in the folder of `make test`, without optimisation, so that they compile next to nothing.
CARGO_INSTALL = "cargo install --locked --path crates/cli"
PIP_INSTALL = "pip install ."
MAKE_TEST, MAKE_DOCS, MAKE_RUN = "make test", "make docs", "make run"
# Commands with a place for the reader's own folder, and the file of tests that run them with one.
WITH_A_FOLDER = {
    "fanin top FOLDER": "crates/cli/tests/top.rs",
    "fanin validate FOLDER": "crates/cli/tests/validate.rs",
}
# Not run whole, with the reason.
NOT_RUN = {
    MAKE_RUN: "It builds with optimisation, and measures two minutes as root; its commands are checked here."
}
INSTALL_SECONDS_MAX = 1800


def commands() -> set[str]:
    """Return every command and every other piece of code in README.md."""
    text = (ROOT / "README.md").read_text()
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines() if line]
    shown = {re.sub(r"\s+#.*$", "", line).removeprefix("$ ") for line in lines}
    return shown | set(SPAN.findall(BLOCK.sub("", text)))


def classified() -> set[str]:
    """Return the commands that a test or another step runs, and all other code."""
    run = {command for document, command in examples() if document == "README.md"}
    built = {CARGO_INSTALL, PIP_INSTALL, MAKE_TEST, MAKE_DOCS}
    return run | built | set(WITH_A_FOLDER) | set(NOT_RUN) | NO_COMMANDS


def test_no_command_of_the_readme_is_left_out() -> None:
    left = commands() - classified()
    assert not left, f"run these in a test, or say in {Path(__file__).name} where they run: {sorted(left)}"
    gone = classified() - commands()
    assert not gone, f"README.md no longer has: {sorted(gone)}"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Return an environment with cargo and the Python tools, in which builds share the tests' folder."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"], str(Path.home() / ".cargo" / "bin")]
    return os.environ | {"PATH": os.pathsep.join(paths), "CARGO_TARGET_DIR": str(TARGET)}


def run(
    command: list[str], environment: dict[str, str], folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; fail with what it said."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done


def test_the_command_installs(environment: dict[str, str], tmp_path: Path) -> None:
    # With the feature of the tests' own binary: it lies in the same folder, and other tests run it.
    options = ["--debug", "--features", "bpf", "--root", str(tmp_path)]
    run([*CARGO_INSTALL.split(), *options], environment)
    version = run([str(tmp_path / "bin" / "fanin"), "--version"], environment, tmp_path).stdout
    assert version.startswith("fanin ")


def test_the_python_package_installs(environment: dict[str, str], tmp_path: Path) -> None:
    # Without network: the build's tools are those of the tests.
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--target", str(tmp_path)]
    unoptimised = environment | {"MATURIN_PEP517_ARGS": "--profile dev --locked"}
    run([sys.executable, "-m", *PIP_INSTALL.split(), *options], unoptimised)
    program = "import fanin; print(fanin.__file__, fanin.Scenario.load('incast').settings['title'])"
    isolated = environment | {"PYTHONPATH": str(tmp_path)}
    printed = run([sys.executable, "-c", program], isolated, tmp_path).stdout
    assert printed == f"{tmp_path / 'fanin' / '__init__.py'} Classical incast\n"


@pytest.mark.parametrize(("command", "file"), WITH_A_FOLDER.items())
def test_commands_with_a_folder_are_run_with_one(command: str, file: str) -> None:
    assert f'"{command.split()[1]}"' in (ROOT / file).read_text()


def recipe(target: str) -> list[str]:
    """Return the commands that make would run."""
    assert shutil.which("make")
    command = ["make", "--dry-run", target]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def test_continuous_integration_is_make_test() -> None:
    assert f"\n{MAKE_TEST} " in (ROOT / ".ci" / "run").read_text()
    assert "scripts/test.py" in recipe("test")[-1]


def test_make_docs_runs_what_the_steps_check(runner: ModuleType) -> None:
    steps = [" ".join(step.command) for step in runner.steps()]
    for line in recipe("docs"):
        if line.startswith(("echo ", "scripts/setup.sh ")):
            continue
        (words,) = re.findall(r"scripts/\w+\.py|cargo doc --workspace --no-deps", line)
        assert any(words in step for step in steps), f"no step runs {line}"


def test_make_run_names_commands_that_exist(binary: Path) -> None:
    lines = recipe("run")
    (rack,) = (line for line in lines if "scripts/rack.sh" in line)
    assert os.access(ROOT / rack.split()[0], os.X_OK)
    (plan,) = (line.split()[1:] for line in lines if " plan " in line)
    subprocess.run([binary, *plan[:2]], check=True, capture_output=True)
    script = (ROOT / "scripts" / "rack.sh").read_text()
    calls = re.findall(r'"\$fanin" ((?:[a-z]+ )+)(.*)', script)
    assert {words.strip() for words, _ in calls} == {"events verify", "report", "run", "sim"}
    for words, rest in calls:
        command = [binary, *words.split(), "--help"]
        help_text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in help_text, f"fanin {words}has no {option}"
