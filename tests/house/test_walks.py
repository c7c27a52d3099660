"""A key's way through the code is short, as docs/ARCHITECTURE.md lists it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The keys whose walks the page lists.
KEYS = {"tor.buffering", "shaping.credits"}
# The most files from a key to its effect, in the simulator and in the live switch.
FILES_MAX = 5


def walks() -> list[tuple[str, str, str]]:
    """Return key, file and word of each step on either side."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    steps = []
    for key, table in re.findall(r"<!-- walk: (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL):
        for row in table.splitlines()[2:]:
            cells = re.findall(r"`([^`]+)`", row)
            steps += [(f"{key}, simulator", *cells[:2]), (f"{key}, live", *cells[2:])]
    return [(side, file, word) for side, file, word in steps]


@pytest.mark.parametrize(("side", "file", "word"), walks())
def test_a_step_is_where_the_page_says(side: str, file: str, word: str) -> None:
    assert word in (ROOT / file).read_text(), f"{side}: {file} has no {word!r}"


def test_walks_are_short() -> None:
    files: dict[str, set[str]] = {}
    for side, file, _ in walks():
        files.setdefault(side, set()).add(file)
    assert files.keys() == {f"{key}, {world}" for key in KEYS for world in ("simulator", "live")}
    long = {side: len(names) for side, names in files.items() if len(names) > FILES_MAX}
    assert not long, f"walks of more than {FILES_MAX} files: {long}"


def test_only_queueing_and_the_simulators_queues_match_on_a_scheme() -> None:
    # Elsewhere code asks a layout for its limits, or compares with one scheme whose key it checks.
    arm = re.compile(r"Buffering::\w+\s*(?:=>|\|(?!\|)|if\b)")
    sources = (path for path in (ROOT / "crates").glob("*/src/**/*.rs") if not path.name.endswith("tests.rs"))
    readers = {str(path.relative_to(ROOT)) for path in sources if arm.search(path.read_text())}
    assert readers == {"crates/queueing/src/layout.rs", "crates/sim/src/fabric/build.rs"}
