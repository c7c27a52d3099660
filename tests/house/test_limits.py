"""The tables of `scripts/limits.py`: names, ceilings, and the shipped scenarios."""

import math
import subprocess

import limits
import named_targets
import pytest
from named_targets import MISSED, Target
from technique_runs import Run, Simulator

SHOWN = """
[run]
duration = "{duration}"
warmup = "{warmup}"

[workload]
kind = "{kind}"
"""


def test_targets_that_may_be_missed_exist() -> None:
    names = [target.name for target in named_targets.targets()]
    assert len(set(names)) == len(names)
    assert set(names) >= MISSED.keys()
    by_name = {target.name: target for target in named_targets.targets()}
    # The limits of a missed target are below it.
    for name, known in MISSED.items():
        assert known.get("mean", math.inf) > by_name[name].mean or known["goodput"] < by_name[name].goodput


def test_each_incast_is_played() -> None:
    incasts = {target.name: target for target in named_targets.targets() if target.preset == "incast"}
    for senders in (2, 16, 128, 1024, 2048):
        for size in ("1 kB", "32 kB", "256 kB", "1 MB"):
            assert f"incast, {senders} x {size}" in incasts
    assert incasts["incast, 16 x 1 kB, linux-6"].settings["transport.profile"] == "linux-6"
    large = incasts["incast, 2048 x 1 MB"]
    assert not large.has_ceiling
    # Four rounds of 2 GB on a gigabit.
    assert limits.seconds_of(large.settings["run.duration"]) >= 4 * 2048 * 1e6 * 8 / 1e9


def test_the_ceiling_of_all_to_all_counts_frames_and_acknowledgements() -> None:
    # 130 230 B of payload and 22 B of header in 90 frames, 45 acknowledgements, and a request of 380 B.
    share = 130_230 / (130_252 + 90 * 90 + 45 * 90 + 380 + 90)
    assert named_targets.all_to_all_ceiling() == pytest.approx(120e9 * share)
    (row,) = (target for target in named_targets.targets() if target.preset == "lcn15-all-to-all")
    assert 0.96 < row.counted < 0.97 <= row.goodput


def test_a_missed_target_may_get_no_worse() -> None:
    by_name = {target.name: target for target in named_targets.targets()}
    sizes = by_name["thesis A, 500 Hz, log-normal 0.5"]

    def run(mean: float, p99: float, queue_kb: float) -> Run:
        return Run({"slowdown_bound": {"mean": mean, "p99": p99}}, collector_queue_kb=queue_kb)

    known = run(1.030, 1.19, 112)
    assert not sizes.judge(known)[0]
    assert not named_targets.is_step_back(sizes, known)
    for worse in (run(1.1, 1.14, 112), run(1.03, 1.5, 112), run(1.03, 1.14, 200), Run({}, "no result")):
        assert named_targets.is_step_back(sizes, worse)
    # Any other target has only its own limits.
    other = by_name["thesis A, 500 Hz, log-normal 0.25"]
    assert other.name not in MISSED
    assert not named_targets.is_step_back(other, run(1.016, 1.05, 68))
    assert named_targets.is_step_back(other, run(1.016, 1.05, 91))


def test_a_share_of_the_ceiling_is_near() -> None:
    target = Target("name", "incast", {}, goodput=0.98)
    run = Run({"slowdown_bound": {"mean": 1 / 0.93}})
    assert target.judge(run, 0.94)[:2] == (False, True)
    assert target.judge(run, 0.96)[:2] == (False, False)


def test_shipped_scenarios_come_from_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"rack": "event-building", "sources": "push", "blocks": "fixed-block", "short": "all-to-all"}

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        name = command[-1]
        text = "".join(f"{kind}  Title\n" for kind in kinds)
        if name in kinds:
            duration = "20 ms" if name == "short" else "10 s"
            text = SHOWN.format(kind=kinds[name], duration=duration, warmup="0 ps")
        return subprocess.CompletedProcess(command, 0, stdout=text)

    monkeypatch.setattr(subprocess, "run", run)
    durations = {name: sets["run.duration"] for name, sets in limits.shipped("fanin").items()}
    assert durations == {"rack": "2000000 us", "blocks": "2000000 us", "short": "20000 us"}


def test_a_scenario_without_events_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        limits, "shipped", lambda _fanin: {"one": {}, "other": {}, "phase2": {}, "incast": {}}
    )
    results = {"one": Run({"slowdown_bound": {"mean": 1.5, "p99": 2.0}}), "other": Run({})}
    # Only those that are known to be large may be too long.
    results["phase2"] = results["incast"] = Run({}, "no result within 9 s of processor time")
    simulator = Simulator("fanin", {}, 1)
    monkeypatch.setattr(Simulator, "run", lambda _self, name, _sets: results[name])
    assert limits.run_shipped(simulator, "", 1) == 2
    table = capsys.readouterr().out
    assert "| one | 1.500 (2.00) |" in table
    assert "| other | no event |" in table
