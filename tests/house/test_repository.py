"""Rules for all files of the repository."""

import os
import re
import subprocess
from pathlib import Path

import pytest

# A path that exists only on one person's machine.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:root|home/\w+|Users/\w+|work)/[\w.-]")
LINES_MAX = 600
# Files that are still longer, with their lines: a number may only fall.
LONG: dict[str, int] = {}
# The most lines of all files below a room's src, with the unit tests there. Files of tests/unit, which src
# compiles by `#[path]`, are not counted.
ROOM_LINES_MAX = {"sim": 9000}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def texts(tracked: list[Path]) -> dict[Path, str]:
    """Return the tracked files that are text."""
    found = {}
    for path in tracked:
        data = path.read_bytes()
        if b"\0" not in data[:4096]:
            found[path] = data.decode(errors="replace")
    return found


def test_no_file_names_a_path_of_one_machine(tracked: list[Path]) -> None:
    found = [
        f"{path}:{number}"
        for path, text in texts(tracked).items()
        if path.name != "test_repository.py"
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found


def test_source_files_stay_short_enough_to_read(root: Path, tracked: list[Path]) -> None:
    sources = [path for path in tracked if path.suffix in {".rs", ".py"}]
    lines = {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in sources}
    long = {name: count for name, count in lines.items() if count > LONG.get(name, LINES_MAX)}
    assert not long, f"split these, which have more than {LINES_MAX} lines: {long}"
    short = [name for name in LONG if lines.get(name, 0) <= LINES_MAX]
    assert not short, f"these are short enough now: remove them from LONG: {short}"


def test_rooms_stay_small_enough_to_read(root: Path) -> None:
    for room, lines_max in ROOM_LINES_MAX.items():
        sources = (root / "crates" / room / "src").rglob("*.rs")
        lines = sum(len(path.read_text().splitlines()) for path in sources)
        assert 0 < lines <= lines_max, f"crates/{room}/src has {lines} lines, more than {lines_max}"


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets on a rendered page."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links_between_documents_lead_somewhere(tracked: list[Path]) -> None:
    broken = []
    for path in (path for path in tracked if path.suffix == ".md"):
        for match in LINK.finditer(path.read_text()):
            link = match.group(1) or match.group(2)
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            name, _, fragment = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists():
                broken.append(f"{path}: {link}")
            elif fragment and fragment not in map(anchor, HEADING.findall(target.read_text())):
                broken.append(f"{path}: {link} (no such heading)")
    assert not broken


def test_rust_tests_skip_by_the_shared_function_only(root: Path) -> None:
    wrong = [
        str(path.relative_to(root))
        for path in root.glob("crates/**/*.rs")
        if re.search(
            r"FANIN_REQUIRE_PRIVILEGES|eprintln!\(\"skipped|^#\[ignore", path.read_text(), re.MULTILINE
        )
    ]
    assert not wrong, f"a test that cannot run calls `skip` of tests/skip.rs: {wrong}"


# Reads the time since an instant, or the time on a processor.
ELAPSED = r"\belapsed\(\)|\bcpu_(?:us|ms|ns|seconds)\b"


def asserts_on_elapsed_time(rust: str) -> bool:
    """Return whether an assertion names an elapsed or processor time, or a variable made from one."""
    for function in re.split(r"\bfn ", rust):
        timed, found = [ELAPSED], 0
        while found != len(timed):
            found = len(timed)
            bound = re.findall(rf"\blet (?:mut )?(\w+)[^=;]*=[^;]*?(?:{'|'.join(timed)})", function)
            timed += sorted({rf"\b{name}\b" for name in bound} - set(timed))
        if re.search(rf"\bassert\w*!\([^;]*?(?:{'|'.join(timed)})", function):
            return True
    return False


@pytest.mark.parametrize(
    ("rust", "found"),
    [
        ("assert!(start.elapsed() < MAX);", True),
        ("let rate = 2 + began.elapsed().as_secs();\nlet all = 3 * rate;\nassert!(lost + all > 5);", True),
        ('let cpu_us = after.cpu_us;\nlet each = cpu_us / 3;\nassert!(each < MAX, "{each}");', True),
        ("let each = start.elapsed();\nprint(each);\nassert!(lost == 0);", False),
        ("let each = start.elapsed();\n}\nfn other() {\nlet each = 1;\nassert!(each == 1);", False),
    ],
)
def test_an_assertion_on_elapsed_time_is_found(rust: str, found: bool) -> None:
    assert asserts_on_elapsed_time(rust) == found


def test_rust_tests_assert_nothing_on_elapsed_time(root: Path) -> None:
    files = root.glob("crates/**/*.rs")
    wrong = [str(path.relative_to(root)) for path in files if asserts_on_elapsed_time(path.read_text())]
    assert not wrong, f"a loop that waits calls `HangGuard::check` of tests/hang_guard.rs: {wrong}"


def test_the_change_log_has_an_unreleased_section_that_speaks_of_the_contract(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text()
    unreleased = re.search(r"^## \[?Unreleased\]?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert unreleased, "CHANGELOG.md has no section '## Unreleased'"
    assert "### Contract" in unreleased.group(1)


def test_scripts_can_be_run(root: Path) -> None:
    for name in (".ci/run", ".ci/nightly", "scripts/setup.sh"):
        assert os.access(root / name, os.X_OK), name
        subprocess.run(["bash", "-n", root / name], check=True)


def test_make_help_lists_every_target_that_people_call(root: Path) -> None:
    output = subprocess.run(["make", "help"], cwd=root, check=True, capture_output=True, text=True).stdout
    listed = {line.split()[1] for line in output.splitlines() if line.startswith("  make ")}
    assert {"help", "run", "test", "bench", "docs", "lint", "clean"} <= listed


def test_each_need_of_the_setup_has_a_test_packages_and_a_purpose(root: Path) -> None:
    text = (root / "scripts" / "setup.sh").read_text()
    needs = re.findall(r"^    '(.*)'$", text, re.MULTILINE)
    assert len(needs) > 20
    for need in needs:
        # Read as the script does, by bars.
        check, packages, purpose = need.split("|")
        assert check.strip(), need
        assert re.fullmatch(r"[a-z0-9+-]+( [a-z0-9+-]+)*", packages), need
        assert purpose.strip(), need
