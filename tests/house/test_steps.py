"""A step of `make test` that cannot run here counts."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


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


@pytest.mark.parametrize(
    ("privileges", "required", "ended"),
    [("0", True, "skipped"), ("1", False, "skipped"), ("1", True, "failed")],
)
def test_a_step_that_cannot_run_counts(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, privileges: str, required: bool, ended: str
) -> None:
    monkeypatch.setenv("FANIN_REQUIRE_PRIVILEGES", privileges)
    step = runner.Step("deep", ("false",), lacks="a deep sea", tests=3, required=required)
    counts, log = runner.run(step)
    assert counts == runner.Counts(**{ended: 3})
    assert [line for line in log.splitlines() if runner.is_skip(line)] == ["SKIPPED deep: needs a deep sea"]


def test_no_step_is_left_out(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "has_dpdk", lambda: False)
    monkeypatch.setattr(runner, "has_std", lambda _: False)
    steps = {step.name: step for step in runner.steps()}
    assert steps["dpdk-test"].lacks
    assert steps["dpdk-test"].tests == 3
    assert steps["macos"].lacks
    assert steps["macos"].required
