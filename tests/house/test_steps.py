"""A step of `make test` that cannot run here counts."""

from types import ModuleType

import pytest


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
