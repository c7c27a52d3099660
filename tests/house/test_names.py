"""A type's name is unique in the workspace, unless it is the same idea in each place; names say a meaning.

`python tests/house/test_names.py` prints the names that stand for several types, and where.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from sources import NOISE, without_noise

ROOT = Path(__file__).resolve().parents[2]
TYPE = re.compile(r"\b(?:struct|enum|union|trait)\s+(\w+)")

# One idea that each place has its own of: an error, a setting, a count.
RECUR = frozenset(
    (
        *("Arguments", "Config", "Counters", "Error", "Options", "ReadError"),
        *("Settings", "StartError", "Summary", "WriteError"),
    )
)
# A scenario's section or key and what is made from it: one name from the key to the effect.
FROM_KEY_TO_EFFECT = frozenset(
    (
        *("CongestionControl", "Dctcp", "Framing", "Link", "Logger", "Network"),
        *("Readout", "Sird", "Supervisor", "Swift", "Switch"),
    )
)
# As a whole name, in either case; as a part of one; and at its beginning.
EMPTY = re.compile(
    r"what|who|whom|whose|rise|fall|(?:.*_)?got(?:_.*)?|(?:test_)?(?:what|who|whom|whose)_.*", re.IGNORECASE
)

# The rooms in which something is made from a section or key.
MAKERS = frozenset(("dataflow", "network", "switch", "tcp", "testbed"))


def places() -> dict[str, list[str]]:
    """Return each name that several types have, with the files that define them."""
    found = defaultdict(list)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for name in TYPE.findall(without_noise(path.read_text())):
            found[name].append(str(path.relative_to(ROOT)))
    return {name: files for name, files in found.items() if len(files) > 1}


def test_a_name_stands_for_one_type() -> None:
    found = {name: files for name, files in places().items() if name not in RECUR | FROM_KEY_TO_EFFECT}
    assert not found, f"give these types names of their own: {found}"


def test_every_permitted_name_recurs() -> None:
    unused = (RECUR | FROM_KEY_TO_EFFECT) - places().keys()
    assert not unused, f"one type has each of these names: remove them from the lists: {unused}"


def test_one_name_leads_from_a_key_to_its_effect() -> None:
    for name in sorted(FROM_KEY_TO_EFFECT):
        rooms = [Path(file).parts[1] for file in places()[name]]
        assert rooms.count("scenario") == 1, f"{name} is no section and no key"
        assert len(rooms) == len(set(rooms)), f"{name} stands for two types of one room: {rooms}"
        others = set(rooms) - {"scenario"}
        assert others <= MAKERS, f"{name} is made from no key in {others - MAKERS}: give it another name"


if __name__ == "__main__":
    for type_name, type_files in sorted(places().items(), key=lambda item: -len(item[1])):
        permitted = "" if type_name not in RECUR | FROM_KEY_TO_EFFECT else " (permitted)"
        print(f"{len(type_files)} {type_name}{permitted}: {' '.join(type_files)}")
