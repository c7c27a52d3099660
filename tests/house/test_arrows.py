"""Dependencies between the crates run one way, as docs/ARCHITECTURE.md draws them."""

import re
from pathlib import Path
from typing import Any

import pytest

Packages = dict[str, dict[str, Any]]

# A crate, and the crates of this house that it uses. Nothing uses cli; plan never uses sim.
ALLOWED: dict[str, set[str]] = {
    "message": {"units"},
    "units": set(),
    "dataflow": {"units"},
    "events": {"units"},
    "queueing": {"units"},
    "report": {"units", "dataflow"},
    "scenario": {"units", "dataflow", "queueing"},
    "switch": {"units", "message", "queueing", "report", "scenario"},
    "tcp": {"units"},
    "network": {"units", "dataflow", "scenario"},
    "node": {"message", "units", "dataflow", "events", "network", "report", "scenario"},
    "openflow": {"units", "scenario", "switch"},
    "plan": {"units", "dataflow", "queueing", "scenario", "network"},
    "python": {"units", "report", "scenario", "plan", "runs", "tune"},
    "recording": {"units", "report", "scenario", "tcp", "network"},
    "sim": {"units", "dataflow", "events", "queueing", "recording", "report", "scenario", "tcp", "network"},
    "testbed": {"units", "dataflow", "events", "report", "scenario", "switch", "network", "node"},
    "reproduce": {"units", "report", "runs", "scenario"},
    "runs": {"units", "events", "network", "report", "scenario", "sim"},
    "tune": {"units", "report", "scenario"},
    "world": {"dataflow", "message", "scenario", "node"},
    "cli": {
        "units",
        "events",
        "report",
        "scenario",
        "network",
        "switch",
        "node",
        "openflow",
        "plan",
        "runs",
        "testbed",
        "reproduce",
        "tune",
    },
}

# Crates that have no use for a standard library even with their default features.
NEVER_STD = {"libm"}
# These build without a standard library: no clock, socket, file or environment can be reached from them.
NO_STD = ("units", "dataflow", "queueing", "tcp")
# These use a standard library, and reach nothing outside themselves either: the outside is an argument.
INWARD = ("sim", "recording", "network")
OUTSIDE = re.compile(
    r"\b(std::(fs|net|thread|time|env|process|os)|stdin|stdout|read_models)\b|\b(File|EventSizes)::read"
)
# A partition of the simulator shares nothing that changes; a run is stopped by an `AtomicBool`.
SHARED = re.compile(
    r"\b(Mutex|RwLock|Condvar|(?:std|core)::cell|OnceLock|Lazy(?:Cell|Lock)|Rc|thread_local|static mut"
    r"|Atomic(?!Bool\b)\w+)\b"
)
PARTITION = (*INWARD, "tcp", "queueing", "dataflow", "units", "scenario", "report", "events")
# A counter for the names of drafts in a folder that processes share. `sim` and `recording` write no file.
SHARING = {"report": ("crates/report/src/files.rs", "AtomicU64")}


def room(package: str) -> str:
    """Return the room that a package lives in."""
    assert package.startswith("fanin-"), f"{package}: a package of the house is named fanin-<room>"
    return package.removeprefix("fanin-")


def used(packages: Packages) -> dict[str, set[str]]:
    """Return the crates of this house that each crate uses; its tests and examples may use others."""
    return {
        room(name): {
            room(dependency["name"])
            for dependency in package["dependencies"]
            if dependency["name"] in packages and dependency["kind"] != "dev"
        }
        for name, package in packages.items()
    }


def test_every_crate_uses_only_what_it_may(packages: Packages) -> None:
    arrows = used(packages)
    new = set(arrows) - set(ALLOWED)
    assert not new, f"new rooms: add them to the table, and to docs/ARCHITECTURE.md: {sorted(new)}"
    wrong = [f"{name} -> {other}" for name, others in arrows.items() for other in others - ALLOWED[name]]
    assert not wrong, "arrows that the table does not permit: " + ", ".join(wrong)


def test_every_permission_is_used(packages: Packages) -> None:
    arrows = used(packages)
    unused = [f"{name} -> {other}" for name, others in ALLOWED.items() for other in others - arrows[name]]
    assert not unused, "permissions that nothing uses: " + ", ".join(unused)


def test_the_map_says_of_every_room_what_it_must_not_know(root: Path) -> None:
    text = (root / "docs" / "ARCHITECTURE.md").read_text()
    section = text.partition("## Invariants")[2].partition("\n## ")[0]
    rows = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert rows == set(ALLOWED), f"rows of docs/ARCHITECTURE.md, section Invariants: {rows ^ set(ALLOWED)}"


def test_the_allowed_arrows_have_no_circle() -> None:
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        ready = {name for name, uses in ALLOWED.items() if name not in done and uses <= done}
        assert ready, f"these depend on each other: {sorted(set(ALLOWED) - done)}"
        done |= ready


def test_a_package_lives_in_the_folder_of_its_room(packages: Packages, root: Path) -> None:
    for name, package in packages.items():
        assert Path(package["manifest_path"]).parent == root / "crates" / room(name)


def test_all_packages_share_the_lints_and_the_version(packages: Packages) -> None:
    for package in packages.values():
        manifest = Path(package["manifest_path"]).read_text()
        for line in ("version.workspace = true", "edition.workspace = true", "[lints]\nworkspace = true"):
            assert line in manifest, f"{package['manifest_path']} lacks {line!r}"


def naming(pattern: re.Pattern[str], name: str, root: Path) -> list[str]:
    """Return the lines of a crate's source, tests aside, in which a pattern occurs."""
    found = []
    for path in sorted((root / "crates" / name / "src").rglob("*.rs")):
        code = path.read_text().partition("#[cfg(test)]\nmod tests")[0]
        for number, line in enumerate(code.splitlines(), 1):
            if pattern.search(line.partition("//")[0]):
                found.append(f"{path.relative_to(root)}:{number}: {line.strip()}")
    return found


@pytest.mark.parametrize("name", INWARD)
def test_rooms_that_compute_name_nothing_outside(name: str, root: Path) -> None:
    found = naming(OUTSIDE, name, root)
    assert not found, "clocks, threads and files belong to `runs`: " + "; ".join(found)


@pytest.mark.parametrize("name", PARTITION)
def test_a_partition_shares_nothing_that_changes(name: str, root: Path) -> None:
    file, word = SHARING.get(name, ("", ""))
    found = naming(SHARED, name, root)
    other = [line for line in found if not (word and line.startswith(f"{file}:") and word in line)]
    assert not other, "partitions must not share what changes: " + "; ".join(other)
    assert not word or found, f"{file} needs no exception any more"


def test_the_rooms_without_shared_state_are_all_that_a_partition_uses() -> None:
    rooms = {"sim"}
    while more := {other for name in rooms for other in ALLOWED[name]} - rooms:
        rooms |= more
    assert set(PARTITION) == rooms


@pytest.mark.parametrize("name", NO_STD)
def test_pure_crates_cannot_reach_the_outside(name: str, packages: Packages, root: Path) -> None:
    package = packages[f"fanin-{name}"]
    source = (root / "crates" / name / "src" / "lib.rs").read_text()
    assert "#![no_std]" in source
    assert "#![forbid(unsafe_code)]" in source
    for dependency in package["dependencies"]:
        other = dependency["name"]
        if dependency["kind"] == "dev" or other.startswith("fanin-") or other in NEVER_STD:
            continue
        assert not dependency["uses_default_features"], (
            f"{name} takes {other} with default features, which may bring the standard library"
        )
