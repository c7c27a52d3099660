"""A type's name is unique in the workspace, unless it is the same idea in each place.

`python tests/house/test_names.py` prints the names that stand for several types, and where.
"""

import re
from collections import defaultdict
from pathlib import Path

from sources import without_noise

ROOT = Path(__file__).resolve().parents[2]
TYPE = re.compile(r"\b(?:struct|enum|union|trait)\s+(\w+)")

# One idea that each place has its own of: an error, a setting, a count.
RECUR = frozenset(
    (
        *("Arguments", "Config", "Counters", "Error", "Options", "ReadError"),
        *("Settings", "StartError", "Stats", "Summary", "WriteError"),
    )
)
# A scenario's section and what is made from it: one name from the key to the effect.
FROM_KEY_TO_EFFECT = frozenset(
    (
        *("Arrivals", "Assignment", "Buffering", "CongestionControl", "Dctcp", "Diatcp", "Ecn"),
        *("Framing", "Hybrid", "LeafSpine", "Limit", "Logger", "Network"),
        *("Policy", "Readout", "RequestOrder", "Run", "Scenario", "Sird"),
        *("StartOrder", "Supervisor", "Swift", "Switch", "TieBreak", "Workload"),
    )
)
# fmt: off
# Names that still stand for several ideas, and how many types have each: a count may only fall.
KNOWN: dict[str, int] = {
    "Action": 4,
    "Claim": 2,
    "Command": 2,
    "Comparison": 2,
    "Endpoint": 2,
    "Event": 2,
    "Events": 2,
    "Flight": 2,
    "Folder": 2,
    "Form": 2,
    "Frame": 3,
    "Hello": 2,
    "Ideal": 2,
    "Idle": 2,
    "Judged": 2,
    "Link": 2,
    "Live": 2,
    "M21tcp": 2,
    "Measured": 3,
    "Memory": 2,
    "Message": 3,
    "NotCapable": 2,
    "Origin": 2,
    "Outcome": 3,
    "Peer": 2,
    "Plan": 2,
    "Pool": 3,
    "PortSpec": 2,
    "Quantity": 3,
    "Random": 2,
    "Requests": 2,
    "Role": 2,
    "ScenarioName": 2,
    "Spread": 2,
    "Stage": 2,
    "System": 2,
    "Target": 2,
    "Technique": 2,
    "Timer": 2,
    "Verdict": 4,
    "Version": 2,
}
# fmt: on


def places() -> dict[str, list[str]]:
    """Return each type's name with the files that define one."""
    found = defaultdict(list)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for name in TYPE.findall(without_noise(path.read_text())):
            found[name].append(str(path.relative_to(ROOT)))
    return {name: files for name, files in found.items() if len(files) > 1}


def test_a_name_stands_for_one_type() -> None:
    allowed = RECUR | FROM_KEY_TO_EFFECT
    new = {
        name: files
        for name, files in places().items()
        if name not in allowed and len(files) > KNOWN.get(name, 1)
    }
    assert not new, f"give these types names of their own: {new}"


def test_no_known_name_outlives_its_types() -> None:
    found = places()
    gone = {
        name: len(found.get(name, ())) for name, count in KNOWN.items() if len(found.get(name, ())) < count
    }
    assert not gone, f"these are fewer now: lower them in KNOWN, or remove them: {gone}"


if __name__ == "__main__":
    for type_name, type_files in sorted(places().items(), key=lambda item: -len(item[1])):
        if type_name not in RECUR | FROM_KEY_TO_EFFECT:
            print(f"{len(type_files)} {type_name}: {' '.join(type_files)}")
