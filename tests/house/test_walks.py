"""Few files name a key on its way through the code, and docs/ARCHITECTURE.md lists all files on the way."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The keys whose walks the page lists.
KEYS = ("tor.buffering", "shaping.credits")
ALL_WAYS = [f"{key}, {world}" for key in KEYS for world in ("simulator", "live")]
# The most files that name a key on its way to its effect, in the simulator and in the live switch.
FILES_MAX = 5

# The rooms that `tor.buffering` passes on each side, and the planner, which asks for limits alone.
SIDES = {
    "simulator": ("scenario/src", "network/src", "queueing/src", "sim/src", "recording/src"),
    "live": ("scenario/src", "testbed/src", "switch/src", "queueing/src"),
    "planner": ("plan/src",),
}
# The key or a scheme, also as the variant of an enum. `Voq` alone is a limit as well.
SCHEME = re.compile(
    r"\bbuffering\b(?!\(|::|;)|\bBuffering(?:Settings)?::\w|BufferingAccounts::(?!new)\w"
    r"|\.has_(?:rings|limit)\(\)"
    r"|^\s*(?:Shared|DynamicThreshold)(?:\(\w+\))?,",
    re.MULTILINE,
)
# The key, the setting of the state machine that it becomes, or the pool of the credits.
CREDITS = re.compile(r"\bshaping\.credit|\bconfig\.credits\b|\bself\.credits\.(?:push|pop|give_back)\(")
# The file of each scheme: a walk ends in one of them.
SCHEMES = {f"crates/queueing/src/{name}.rs" for name in ("dedicated", "shared", "dynamic_threshold", "voq")}


def no_steps(key: str) -> set[str]:
    """Return the files that name a key and are no step from it to its effect, as the page says."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    (table,) = re.findall(r"<!-- no step -->\n(.*?)<!-- end -->", text, re.DOTALL)
    rows = [re.findall(r"`([^`]+)`", row.rsplit("|", 2)[0]) for row in table.splitlines()[2:]]
    assert all(len(row) == 2 and row[0] in KEYS for row in rows), rows
    return {file for named, file in rows if named == key}


def walks() -> list[tuple[str, str, str]]:
    """Return key, file and word of each step on either side."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    steps = []
    for key, table in re.findall(r"<!-- walk: (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL):
        for row in table.splitlines()[2:]:
            cells = re.findall(r"`([^`]+)`", row)
            steps += [(f"{key}, simulator", *cells[:2]), (f"{key}, live", *cells[2:])]
    return [(side, file, word) for side, file, word in steps]


def ways() -> dict[str, list[tuple[str, str]]]:
    """Return all files from a key to its effect on either side, with a name that each of them defines."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    found: dict[str, list[tuple[str, str]]] = {}
    for key, table in re.findall(r"<!-- way: (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL):
        for row in table.splitlines()[2:]:
            cells = [cell.strip(" `") for cell in row.split("|")[1:-1]]
            for side, (file, name) in zip(("simulator", "live"), (cells[:2], cells[2:]), strict=True):
                if file:
                    found.setdefault(f"{key}, {side}", []).append((file, name))
    return found


def code(file: str) -> str:
    """Return the code of a file without its tests and comments."""
    return re.sub(r"//.*", "", (ROOT / file).read_text().split("#[cfg(test)]\nmod tests {")[0])


def untied(way: list[tuple[str, str]]) -> list[str]:
    """Return the files of a way that no name ties to the file before them."""
    found = []
    for (before, given), (file, name) in pairwise(way):
        if not re.search(rf"\b{name}\b", code(before)) and not re.search(rf"\b{given}\b", code(file)):
            found.append(file)
    return found


@pytest.mark.parametrize("side", ALL_WAYS)
def test_the_whole_way_is_listed(side: str) -> None:
    way = ways()[side]
    files = [file for file, _ in way]
    assert len(set(files)) == len(files)
    assert {file for name, file, _ in walks() if name == side} <= set(files)
    for file, name in way:
        assert re.search(rf"\b(?:fn|struct|enum) {name}\b", code(file)), f"{file} defines no {name}"
    assert not untied(way), "the way to these files is not listed"


@pytest.mark.parametrize("side", ALL_WAYS)
def test_a_way_with_a_gap_is_found(side: str) -> None:
    way = ways()[side]
    # Without the files between, the last one has no tie to the first one.
    assert untied([way[0], way[-1]]) == [way[-1][0]]


def test_the_page_counts_the_files_of_a_way() -> None:
    text = " ".join((ROOT / "docs" / "ARCHITECTURE.md").read_text().split())
    pattern = (
        r"`tor.buffering` passes (\d+) files in the simulator and (\d+) live, "
        r"and `shaping.credits` (\d+) and (\d+)"
    )
    (counts,) = re.findall(pattern, text)
    assert [int(count) for count in counts] == [len(ways()[side]) for side in ALL_WAYS]


@pytest.mark.parametrize(("side", "file", "word"), walks())
def test_a_step_is_where_the_page_says(side: str, file: str, word: str) -> None:
    assert word in (ROOT / file).read_text(), f"{side}: {file} has no {word!r}"


def test_walks_are_short() -> None:
    files: dict[str, set[str]] = {}
    for side, file, _ in walks():
        files.setdefault(side, set()).add(file)
    assert files.keys() == set(ALL_WAYS)
    long = {side: len(names) for side, names in files.items() if len(names) > FILES_MAX}
    assert not long, f"walks of more than {FILES_MAX} files: {long}"


def named_by(side: str) -> set[str]:
    """Return the source files of one side that name the key or a scheme (not tests, texts, comments)."""
    files = set()
    for folder in SIDES[side]:
        for path in (ROOT / "crates" / folder).rglob("*.rs"):
            source = path.read_text().split("#[cfg(test)]")[0]
            source = re.sub(r'//.*|"(?:\\.|[^"\\])*"', "", source)
            if not path.name.endswith("tests.rs") and SCHEME.search(source):
                files.add(str(path.relative_to(ROOT)))
    return files


@pytest.mark.parametrize("side", ["simulator", "live"])
def test_no_other_file_of_a_side_names_a_scheme(side: str) -> None:
    walk = {file for name, file, _ in walks() if name == f"tor.buffering, {side}"}
    assert len(walk & SCHEMES) == 1, "a walk ends in the file of one scheme"
    others = {file for file in no_steps("tor.buffering") if file.startswith(crates(side))}
    assert named_by(side) == walk | SCHEMES | others


def test_the_page_counts_the_files_that_name_a_scheme() -> None:
    text = " ".join((ROOT / "docs" / "ARCHITECTURE.md").read_text().split())
    (counts,) = re.findall(r"In all (\d+) files of the simulator's rooms and (\d+) of the live", text)
    assert [int(count) for count in counts] == [len(named_by(side)) for side in ("simulator", "live")]


def test_the_planner_names_no_scheme() -> None:
    assert not named_by("planner"), "ask the switch's layout"


@pytest.mark.parametrize("side", ["simulator", "live"])
def test_no_other_file_of_a_side_reads_the_credits(side: str) -> None:
    walk = {file for name, file, _ in walks() if name == f"shaping.credits, {side}"}
    rooms = ("scenario/src", "dataflow/src", "sim/src" if side == "simulator" else "node/src")
    readers = set()
    for path in (path for room in rooms for path in (ROOT / "crates" / room).rglob("*.rs")):
        source = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]")[0])
        # A text that is the key alone reads or sets it. Other texts mention it.
        if '"shaping.credits"' in source or CREDITS.search(re.sub(r'"(?:\\.|[^"\\])*"', "", source)):
            readers.add(str(path.relative_to(ROOT)))
    # The pool behind the collector has no key.
    assert readers == walk - {"crates/dataflow/src/credit.rs"} | no_steps("shaping.credits")


def crates(side: str) -> tuple[str, ...]:
    return tuple(f"crates/{folder}/" for folder in SIDES[side])


def test_only_queueing_matches_on_a_scheme() -> None:
    # Elsewhere code asks a layout for its limits, or compares with one scheme whose key it checks.
    arm = re.compile(r"Buffering::\w+\s*(?:=>|\|(?!\|)|if\b)")
    sources = (path for path in (ROOT / "crates").glob("*/src/**/*.rs") if not path.name.endswith("tests.rs"))
    readers = {str(path.relative_to(ROOT)) for path in sources if arm.search(path.read_text())}
    assert readers == {"crates/queueing/src/buffering.rs"}
