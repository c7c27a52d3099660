"""Files of this repository that its pages name exist, and hold what the pages say.

`python tests/house/test_paths.py` prints each name that stands for no file, with its page.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/ARCHITECTURE.md", "docs/CONTRIBUTING.md")
# Pages for users also name files of their own and of other projects: only our sources and folders count.
USERS_PAGES = tuple(
    name
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/howto").glob("*.md")),
    )
    if (name := str(path.relative_to(ROOT))) not in PAGES
)
# A path in backticks, or the name of a source file in a figure.
QUOTED = re.compile(r"`([\w.*/<>-]+)`")
FILE = re.compile(r"[\w/-]*\w\.(?:rs|py|sh|toml|md|json)\b")
# A name of the code, and the source file that holds it.
PLACED = re.compile(r"`(\w[\w:]*)` in\s+`(crates/[\w/-]+\.rs)`")
# A file that the reader of a recipe is to create, or made by a build.
TO_CREATE = re.compile(r"NAME|<\w+>|^target/")


def tracked() -> frozenset[str]:
    """Return every file of the repository, and every folder that holds one."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    folders = {str(parent) for name in names if name for parent in Path(name).parents}
    return frozenset(names) | folders


def named(text: str) -> set[str]:
    """Return the paths that a page names: in backticks with a slash or a file's ending, or in a figure."""
    quoted = {name for name in QUOTED.findall(text) if "/" in name or FILE.fullmatch(name)}
    figures = {name for block in re.findall(r"(?ms)^```$.*?^```$", text) for name in FILE.findall(block)}
    return {name.rstrip("/") for name in quoted | figures if not TO_CREATE.search(name)}


def missing() -> list[tuple[str, str]]:
    """Return each page with a path that is neither a path from the root nor the end of one."""
    files = tracked()
    ends = {name[at + 1 :] for name in files for at, sign in enumerate(name) if sign == "/"}
    folders = {name.split("/")[0] for name in files if "/" in name}
    return [
        (page, name)
        for page in (*PAGES, *USERS_PAGES)
        for name in sorted(named((ROOT / page).read_text()))
        if name not in files and name not in ends and (page in PAGES or is_ours(name, folders))
    ]


def misplaced(text: str) -> list[tuple[str, str]]:
    """Return each name that a text places into a file without it."""
    return [
        (name, file)
        for name, file in PLACED.findall(text)
        if not re.search(rf"\b{name.split('::')[-1]}\b", (ROOT / file).read_text())
    ]


def is_ours(name: str, folders: set[str]) -> bool:
    """Return whether a path is of this repository: a source in Rust, or below one of its folders."""
    return name.endswith(".rs") or ("/" in name and name.split("/")[0] in folders)


def test_named_files_exist() -> None:
    assert not missing(), f"these are named and do not exist: {missing()}"


def test_a_missing_file_is_found() -> None:
    assert named("see `crates/none/src/none.rs`, `a/b` and `none.rs`") == {
        *("crates/none/src/none.rs", "a/b", "none.rs"),
    }
    assert named("```\n  x ──▶ none.rs: text\n```") == {"none.rs"}
    assert not named("`crates/sim/src/techniques/NAME/`, `x == y`")
    folders = {"crates", "tests"}
    assert all(is_ours(name, folders) for name in ("tests/port.rs", "none.rs", "tests/none/run.py"))
    assert not any(is_ours(name, folders) for name in ("rack.toml", "tools/testing", "choose.py"))


def test_recipes_name_what_their_files_hold() -> None:
    text = (ROOT / "docs" / "CONTRIBUTING.md").read_text()
    assert len(PLACED.findall(text)) >= 10
    assert not misplaced(text), f"these files hold no such name: {misplaced(text)}"
    plan = "crates/world/src/plan.rs"
    false = f"Add it to `Fault` in\n  `{plan}`, and to `Config::layout` in `{plan}`."
    assert misplaced(false) == [(name, plan) for name in ("Fault", "Config::layout")]


def test_pages_say_how_long_harnesses_run() -> None:
    set_to = re.search(r"^export FANIN_FUZZ_SECONDS=(\d+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert set_to
    said = re.search(r"`\.ci/run` gives each (.+?),", (ROOT / "fuzz" / "README.md").read_text())
    listed = re.search(r"in continuous integration (.+?);", (ROOT / "docs" / "switch.md").read_text())
    assert [match and match[1] for match in (said, listed)] == [f"{set_to[1]} s"] * 2


if __name__ == "__main__":
    for page, name in missing():
        print(f"{page}: {name}")
