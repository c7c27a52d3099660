"""Every direct dependency stands in docs/DEPENDENCIES.md with the reason for it, and nothing else does."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

Packages = dict[str, dict[str, Any]]

ROW = re.compile(r"^\| `([\w.-]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
REASON_LETTERS_MIN = 20


@pytest.fixture(scope="module")
def listed(root: Path) -> dict[str, str]:
    """Return the names in the tables, each with its reason."""
    text = (root / "docs" / "DEPENDENCIES.md").read_text()
    return {name: reason for name, _use, reason in ROW.findall(text)}


@pytest.fixture(scope="module")
def used(root: Path, packages: Packages) -> set[str]:
    """Return the direct dependencies of all crates, of the Python package and of its tools."""
    names = {
        dependency["name"]
        for package in packages.values()
        for dependency in package["dependencies"]
        if dependency["name"] not in packages
    }
    project = tomllib.loads((root / "pyproject.toml").read_text())
    python = list(project["project"]["dependencies"])
    for extra in project["project"].get("optional-dependencies", {}).values():
        python += extra
    python += project["build-system"]["requires"]
    python += [
        line
        for name in ("requirements-dev.in", "requirements-wheels.in")
        for line in (root / name).read_text().splitlines()
        if line and not line.startswith("#")
    ]
    return names | {re.split(r"[<>=!~\[; ]", name)[0] for name in python}


def test_every_direct_dependency_has_a_reason(used: set[str], listed: dict[str, str]) -> None:
    assert not used - set(listed), f"add to docs/DEPENDENCIES.md: {sorted(used - set(listed))}"
    short = [name for name, reason in listed.items() if len(reason) < REASON_LETTERS_MIN]
    assert not short, f"say why these and not their rivals: {short}"


def test_no_row_outlives_its_dependency(used: set[str], listed: dict[str, str]) -> None:
    assert not set(listed) - used, f"remove from docs/DEPENDENCIES.md: {sorted(set(listed) - used)}"
