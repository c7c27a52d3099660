"""Fixtures of the tests; in continuous integration (FANIN_REQUIRE_PRIVILEGES=1) a skipped test fails."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
REQUIRED = os.environ.get("FANIN_REQUIRE_PRIVILEGES") == "1"

# A shell without job control starts its background jobs with SIGINT ignored. Tests send it to their own
# processes, which would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def binary() -> Path:
    """Return the command, which `make test` has built."""
    path = os.environ.get("FANIN_BIN")
    assert path, "set FANIN_BIN to the fanin binary"
    return Path(path)


@pytest.fixture(scope="session")
def packages() -> dict[str, dict[str, Any]]:
    """Return the workspace's packages by name, as cargo describes them."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {package["name"]: package for package in json.loads(output)["packages"]}


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """Return the files that git tracks, and new ones not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in output.split("\0") if name]
    return [path for path in paths if path.is_file()]


@pytest.fixture
def runner(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return scripts/test.py as a module that writes its logs elsewhere."""
    spec = importlib.util.spec_from_file_location("runner", root / "scripts" / "test.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "runner", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOGS", tmp_path)
    return module


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the report of a skipped test into a failure where nothing may be skipped."""
    report = yield
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped, which FANIN_REQUIRE_PRIVILEGES=1 forbids: {call.excinfo}"
        )
    return report
