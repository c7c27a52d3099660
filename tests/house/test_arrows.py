"""Dependencies between the crates run one way, as docs/ARCHITECTURE.md draws them."""

from pathlib import Path
from typing import Any

import pytest

Packages = dict[str, dict[str, Any]]

# A crate, and the crates of this house it may use. Nothing uses cli; plan never uses sim.
ALLOWED: dict[str, set[str]] = {
    "units": set(),
    "dataflow": {"units"},
    "queueing": {"units"},
    "tcp": {"units"},
    "events": {"units"},
    "message": {"units"},
    "scenario": {"units", "dataflow", "queueing", "events"},
    "network": {"units", "dataflow", "scenario"},
    "report": {"units", "dataflow", "scenario"},
    "plan": {"units", "dataflow", "queueing", "events", "scenario", "report"},
    "sim": {"units", "dataflow", "queueing", "tcp", "events", "scenario", "network", "report"},
    "reproduce": {"units", "dataflow", "queueing", "events", "scenario", "report", "plan", "sim"},
    "node": {"units", "dataflow", "events", "message", "scenario", "report"},
    "switch": {"units", "queueing", "scenario", "report"},
    "openflow": {"units", "scenario", "switch"},
    "testbed": {"units", "dataflow", "queueing", "events", "message", "scenario", "report", "node", "switch"},
    "cli": {
        *("units", "dataflow", "queueing", "events", "message", "scenario", "report"),
        *("plan", "sim", "reproduce", "node", "switch", "openflow", "testbed"),
    },
    "python": {"units", "dataflow", "queueing", "events", "scenario", "report", "plan", "sim"},
}

# Crates that have no use for a standard library even with their default features.
NEVER_STD = {"libm"}
# These build without a standard library: no clock, socket, file or environment can be reached from them.
NO_STD = ("units", "dataflow", "queueing", "tcp")


def room(package: str) -> str:
    """Return the room that a package lives in."""
    assert package.startswith("fanin-"), f"{package}: a package of the house is named fanin-<room>"
    return package.removeprefix("fanin-")


def test_every_crate_uses_only_what_it_may(packages: Packages) -> None:
    wrong = []
    for name, package in packages.items():
        assert room(name) in ALLOWED, (
            f"{name} is a new room: add it to the table, and to docs/ARCHITECTURE.md"
        )
        for dependency in package["dependencies"]:
            other = dependency["name"]
            # A crate's own tests may use its users, as an example may.
            if other in packages and dependency["kind"] != "dev" and room(other) not in ALLOWED[room(name)]:
                wrong.append(f"{name} -> {other}")
    assert not wrong, "arrows that the design does not have: " + ", ".join(wrong)


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


@pytest.mark.parametrize("name", NO_STD)
def test_pure_crates_cannot_reach_the_outside(name: str, packages: Packages, root: Path) -> None:
    package = packages.get(f"fanin-{name}")
    if package is None:
        pytest.skip(f"the room {name} has no inhabitant yet")
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
