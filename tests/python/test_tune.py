"""Searches by Optuna find known optima, go on where they were, and share a study."""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import polars
import pytest

import fanin


@pytest.fixture
def scenario() -> fanin.Scenario:
    text = 'extends = "incast"\n[run]\nduration = "100 ms"\n'
    text += '[workload]\nsenders = 4\nrequest_size = "20 kB"\n'
    return fanin.Scenario.load_text("small", text)


def written(folder: Path) -> dict[str, int]:
    """Return the time at which each simulation was stored."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("[!.]*/summary.json")}


def folders(points: Sequence[fanin.TunedPoint]) -> set[str]:
    return {folder.name for point in points for folder in point.folders}


def test_the_largest_number_of_senders_without_loss_is_found(
    scenario: fanin.Scenario, tmp_path: Path
) -> None:
    every = fanin.sweep(scenario, {"workload.senders": range(2, 41)}, seeds=[1, 2], progress=False)
    lost: dict[int, int] = {}
    for point in every:
        senders = int(str(point.settings["workload.senders"]))
        lost[senders] = lost.get(senders, 0) + point.result.summary["network"]["drops"]
    most = max(senders for senders, drops in lost.items() if drops == 0)
    assert 2 < most < 40, "the best value is inside the range"
    found = fanin.tune(
        scenario.replace({"run.seed": 1}),
        over={"workload.senders": "2..40"},
        maximise="workload.senders",
        subject="drops=0",
        seeds=2,
        trials=25,
        out=tmp_path,
        progress=False,
    )
    assert found.best is not None
    assert found.best.settings == {"workload.senders": most}
    assert (found.best.value, found.best.state) == (most, "complete")
    assert [result.summary["network"]["drops"] for result in found.best.results] == [0, 0]
    # Constraints are those of Optuna, and the first seed that misses one is the last of its trial.
    assert found.study.best_trial.params == {"workload.senders": most}
    for trial, tried in zip(found.study.trials, found.points, strict=True):
        if tried.state == "pruned":
            continue
        assert (trial.constraints["drops=0"] > 0) == (lost[trial.params["workload.senders"]] > 0)
        if tried.far["drops=0"]:
            drops = [result.summary["network"]["drops"] for result in tried.results]
            assert all(count == 0 for count in drops[:-1])
            assert drops[-1] > 0
    assert set(written(tmp_path)) == folders(found.points)


def test_the_smallest_buffer_is_the_one_that_holds_all_answers(
    scenario: fanin.Scenario, tmp_path: Path
) -> None:
    bigger = scenario.replace({"workload.request_size": "80 kB"})
    found = fanin.tune(
        bigger,
        over={"tor.buffer": "32 kB..1 MB"},
        minimise="tor.buffer",
        subject=["drops=0"],
        seeds=1,
        trials=40,
        out=tmp_path,
        progress=False,
    )
    assert found.best is not None
    assert found.best.value is not None
    # No more than what four answers take, in frames with 58 B of headers, and near the edge.
    assert 128e3 < found.best.value <= 4 * 80e3 * 1518 / 1460
    less = bigger.replace({"tor.buffer": f"{found.best.value * 0.9:.0f} B"})
    assert less.simulate(progress=False).summary["network"]["drops"] > 0
    frame = polars.DataFrame(found.table())
    assert set(frame["state"].to_list()) <= {"complete", "pruned"}
    assert (
        frame.filter(polars.col("far from drops=0") == 0)["tor.buffer (objective)"].min() == found.best.value
    )
    assert f"{found.best.value:.6g} bytes at tor.buffer" in repr(found)
    assert found.table().units == {"tor.buffer (objective)": "bytes", "half_interval": "bytes"}


def test_a_choice_of_values_is_searched_too(scenario: fanin.Scenario, tmp_path: Path) -> None:
    found = fanin.tune(
        scenario.replace({"workload.senders": 16}),
        over={"tor.buffer": ["32 kB", "4 MB"], "transport.profile": None}
        | {"transport.profile": ["ns3-newreno", "linux-6"]},
        minimise="mean",
        seeds=1,
        trials=8,
        sampler="random",
        out=tmp_path,
        progress=False,
    )
    assert found.best is not None
    assert found.best.settings["tor.buffer"] == "4 MB", "nothing is lost there"
    first = found.points[0]
    assert first.settings["transport.profile"] == "ns3-newreno", "it begins with the scenario's own value"


def test_choices_may_be_numbers_of_numpy(scenario: fanin.Scenario, tmp_path: Path) -> None:
    found = fanin.tune(
        scenario,
        over={"workload.senders": list(np.array([2, 3]))},
        minimise="mean",
        seeds=1,
        trials=2,
        out=tmp_path,
        progress=False,
    )
    assert {type(point.settings["workload.senders"]) for point in found.points} == {int}


SEARCH = """
import sys, fanin
scenario = fanin.Scenario.load("incast", {"run.duration": "2 s", "workload.senders": 8})
found = fanin.tune(
    scenario,
    over={"tor.buffer": "64 kB..8 MB"},
    minimise="mean",
    subject="drops=0",
    seeds=2,
    trials=int(sys.argv[2]),
    batch=2,
    out=sys.argv[1],
    progress=False,
)
print(len(found.points), found.best and found.best.settings["tor.buffer"])
"""


def search(out: Path, trials: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SEARCH, str(out), str(trials)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_search_goes_on_and_does_no_point_twice(how: signal.Signals, tmp_path: Path) -> None:
    with search(tmp_path, 12) as process:
        while len(written(tmp_path)) < 5:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.send_signal(how)
        process.communicate()
    before = written(tmp_path)
    assert len(before) >= 5
    with search(tmp_path, 12) as process:
        printed, errors = process.communicate()
    assert process.returncode == 0, errors
    after = written(tmp_path)
    assert before.items() <= after.items(), "what was simulated before was taken as it is"
    assert printed.split()[0] == "12", "the trials in work at the end were finished, not lost"
    (name,) = optuna.study.get_all_study_names(storage(tmp_path))
    study = optuna.load_study(study_name=name, storage=storage(tmp_path))
    assert {trial.state.name for trial in study.trials} <= {"COMPLETE", "PRUNED"}
    keys = {key for trial in study.trials for key in trial.user_attrs["keys"]}
    assert set(after) == keys, "every simulation belongs to a trial"


@pytest.mark.parametrize("when", ["_suggest", "set_user_attr"])
def test_a_trial_that_had_just_begun_goes_on(when: str, tmp_path: Path) -> None:
    dies = f"""
import os, optuna
optuna.Trial.{when} = lambda *arguments: os._exit(9)
"""
    command = [sys.executable, "-c", dies + SEARCH, str(tmp_path), "4"]
    assert subprocess.run(command, check=False).returncode == 9
    with search(tmp_path, 4) as process:
        printed, errors = process.communicate()
    assert (process.returncode, printed.split()[:1]) == (0, ["4"]), errors
    (name,) = optuna.study.get_all_study_names(storage(tmp_path))
    states = [
        trial.state.name for trial in optuna.load_study(study_name=name, storage=storage(tmp_path)).trials
    ]
    assert len(states) == 4
    assert set(states) <= {"COMPLETE", "PRUNED"}


def storage(folder: Path) -> Any:
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.journal"))
    return optuna.storages.JournalStorage(backend)


def test_processes_share_a_study(tmp_path: Path) -> None:
    with search(tmp_path, 14) as one, search(tmp_path, 14) as other:
        outcomes = [process.communicate() for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), outcomes
    (name,) = optuna.study.get_all_study_names(storage(tmp_path))
    study = optuna.load_study(study_name=name, storage=storage(tmp_path))
    # Both may ask for a last batch at the same moment; what is beyond the total is given back.
    made = [trial for trial in study.trials if "given_back" not in trial.user_attrs]
    assert len(made) == 14
    assert len({trial.user_attrs["owner"] for trial in made}) == 2, "both have done their part"


MEETING = """
import os, pathlib, sys, time
from fanin import tuning

ask = tuning._Search._ask


def ask_together(search, wanted):
    # Asks when the other process is about to ask, too: both have counted the same trials.
    pathlib.Path(sys.argv[1], f"{os.getpid()}.meets").touch()
    while len(list(pathlib.Path(sys.argv[1]).glob("*.meets"))) < 2:
        time.sleep(0.01)
    return ask(search, wanted)


tuning._Search._ask = ask_together
"""


def test_processes_that_ask_at_once_make_no_trial_too_many(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MEETING + SEARCH, str(tmp_path), "2"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "ab"
    ]
    outcomes = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], outcomes
    (name,) = optuna.study.get_all_study_names(storage(tmp_path))
    study = optuna.load_study(study_name=name, storage=storage(tmp_path))
    assert len(study.trials) > 2, "both have asked for all trials"
    assert sum("given_back" not in trial.user_attrs for trial in study.trials) == 2
    assert {trial.state.name for trial in study.trials if "given_back" in trial.user_attrs} == {"FAIL"}
    # Asked for more, the study does not count those either.
    with search(tmp_path, 3) as process:
        printed, errors = process.communicate()
    assert (process.returncode, printed.split()[:1]) == (0, ["3"]), errors


def test_trials_that_are_clearly_worse_end_early(scenario: fanin.Scenario, tmp_path: Path) -> None:
    big = scenario.replace({"workload.senders": 16, "run.duration": "1 s"})
    over = {"tor.buffer": "32 kB..8 MB"}

    def go(folder: str, pruner: bool | optuna.pruners.BasePruner) -> fanin.Tuning:
        return fanin.tune(
            big,
            over=over,
            minimise="mean",
            seeds=3,
            trials=16,
            durations=["100 ms"],
            pruner=pruner,
            out=tmp_path / folder,
            progress=False,
        )

    pruned, whole = go("pruned", True), go("whole", False)
    states = [point.state for point in pruned.points]
    assert "pruned" in states
    assert {point.state for point in whole.points} == {"complete"}
    assert len(written(tmp_path / "pruned")) < len(written(tmp_path / "whole"))
    early = [trial for trial in pruned.study.trials if trial.state.name == "PRUNED"]
    assert any(len(trial.user_attrs["keys"]) == 0 for trial in early), "after the shorter time alone"
    assert pruned.best is not None
    assert whole.best is not None
    assert pruned.best.value == pytest.approx(whole.best.value, rel=0.05)
    assert len(pruned.best.values) == 3
    median = optuna.pruners.MedianPruner(n_startup_trials=2)
    assert isinstance(go("median", median).study.pruner, optuna.pruners.MedianPruner)


def test_the_answer_is_the_same_on_any_executor(scenario: fanin.Scenario, tmp_path: Path) -> None:
    found = []
    for number, pool in enumerate([None, ThreadPoolExecutor(3)]):
        tuning = fanin.tune(
            scenario,
            over={"tor.buffer": "16 kB..512 kB", "workload.senders": "2..8"},
            maximise="goodput",
            seeds=1,
            trials=14,
            out=tmp_path / str(number),
            executor=pool,
            progress=False,
        )
        found.append([(point.settings, point.values) for point in tuning.points])
    assert found[0] == found[1]


def test_a_refused_scenario_is_a_trial_with_its_reason(scenario: fanin.Scenario, tmp_path: Path) -> None:
    # Each end is fine with the other's own value, and some pairs are not.
    both = {"tor.pause.xoff": "11 kB..40 kB", "tor.pause.xon": "5 kB..39 kB"}
    paused = scenario.replace(
        {
            "tor.pause.mode": "pause",
            "tor.pause.xoff": "40 kB",
            "tor.pause.xon": "10 kB",
            "tor.buffering": "shared",
        }
    )
    found = fanin.tune(
        paused, over=both, minimise="mean", seeds=1, trials=10, sampler="random", out=tmp_path, progress=False
    )
    refused = [point for point in found.points if point.state == "refused"]
    assert refused
    assert all("would be paused at" in point.why for point in refused)
    assert found.best is not None


def test_choices_that_are_valid_together_are_searched(scenario: fanin.Scenario, tmp_path: Path) -> None:
    # DCTCP needs marks, and marks alone do nothing for cubic.
    over: dict[str, Any] = {
        "transport.congestion_control": ["cubic", "dctcp"],
        "tor.ecn.mode": ["off", "threshold"],
    }
    found = fanin.tune(
        scenario.replace({"transport.congestion_control": "cubic"}),
        over=over,
        minimise="mean",
        seeds=1,
        trials=12,
        sampler="random",
        pruner=False,
        out=tmp_path,
        progress=False,
    )
    tried = {(*point.settings.values(), point.state) for point in found.points}
    assert ("cubic", "off", "complete") in tried
    assert ("dctcp", "threshold", "complete") in tried
    assert ("dctcp", "off", "refused") in tried
    with pytest.raises(fanin.ScenarioError, match="dctcpp"):
        fanin.tune(
            scenario,
            over={**over, "transport.congestion_control": ["cubic", "dctcpp"]},
            minimise="mean",
            out=tmp_path,
        )


def test_no_trial_meets_impossible_constraints(scenario: fanin.Scenario, tmp_path: Path) -> None:
    with pytest.warns(fanin.RunWarning, match=r"no trial meets mean<1 us; nearest was \{'tor.buffer'"):
        found = fanin.tune(
            scenario,
            over={"tor.buffer": "16 kB..512 kB"},
            minimise="mean",
            subject="mean<1 us",
            seeds=1,
            trials=4,
            out=tmp_path,
            progress=False,
        )
    assert found.best is None
    assert found.nearest is not None
    assert not found.nearest.is_feasible
    with pytest.raises(
        RuntimeError, match=r"none of the first 4 trials has a result.*99th percentile needs 100"
    ):
        fanin.tune(
            scenario.replace({"run.duration": "10 ms"}),
            over={"tor.buffer": None},
            minimise="p99",
            seeds=1,
            out=tmp_path,
            progress=False,
        )
    with pytest.raises(RuntimeError, match=r"none of the first 4 trials.*not simulated"):
        fanin.tune(
            scenario.replace({"transport.congestion_control": "bbr", "transport.profile": "linux-2.6.32"}),
            over={"tor.buffer": None},
            minimise="mean",
            seeds=1,
            out=tmp_path,
            progress=False,
        )


def test_mistakes_are_refused_before_anything_runs(
    scenario: fanin.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(error: type[Exception], match: str, **changes: Any) -> None:
        wanted: dict[str, Any] = {"over": {"tor.buffer": None}, "minimise": "mean", **changes}
        with pytest.raises(error, match=match):
            fanin.tune(scenario, out=tmp_path / "x", progress=False, **wanted)

    refused(TypeError, "either `minimise` or `maximise`", minimise=None)
    refused(TypeError, "either `minimise` or `maximise`", maximise="goodput")
    refused(ValueError, "no figure `speed`; the figures are collected,", minimise="speed")
    refused(ValueError, "`p99` is a time, not `20`", subject="p99<20")
    refused(ValueError, "no value of `drops` can meet", subject=["drops=0", "drops>0"])
    refused(ValueError, "nothing bounds it", minimise="tor.buffer")
    refused(ValueError, "nothing to vary", over={})
    refused(fanin.ScenarioError, "did you mean", over={"tor.bufer": None})
    refused(fanin.ScenarioError, "senders", over={"workload.senders": "0..4"})
    refused(ValueError, "`tor.buffer` is a size, not `60`", over={"tor.buffer": "60..1200"})
    refused(ValueError, "not a number", over={"tor.buffering": None})
    refused(ValueError, "is not a range", over={"tor.buffer": "64 kB"})
    refused(TypeError, "wants a range", over={"tor.buffer": 64})
    refused(ValueError, "fewer than two values", over={"tor.buffer": ["64 kB"]})
    refused(
        ValueError,
        "needs a range",
        minimise="tor.buffer",
        subject="drops=0",
        over={"tor.buffer": ["1 MB", "2 MB"]},
    )
    refused(ValueError, "1 to 1000 seeds", seeds=0)
    refused(ValueError, "a number of seconds above 0, not nan", timeout=math.nan)
    refused(ValueError, "`run.seed` is not varied here", over={"run.seed": "1..9"})
    refused(ValueError, "`run.seed` is not varied here", over={"run.seed": [1, 2, 3]})
    refused(ValueError, "a whole number from 1 on, not 0", trials=0)
    refused(ValueError, "all are shorter", durations=["1 s"])
    refused(TypeError, "is a list", durations="1 ms")
    refused(ValueError, "no sampler `best`; the samplers are tpe", sampler="best")
    refused(TypeError, "not a sampler", sampler=7)
    refused(TypeError, "not a pruner", pruner=7)
    assert not written(tmp_path / "x")
    journal = tmp_path / "mine.journal"
    journal.write_text("no journal\n")
    refused(ValueError, f"{journal} is damaged, or is not a study", storage=journal)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(ModuleNotFoundError, "the sampler `cmaes` needs cmaes: pip install cmaes", sampler="cmaes")
    refused(ModuleNotFoundError, "the sampler `gp` needs scipy", sampler="gp")
    assert not written(tmp_path / "x")
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused(ModuleNotFoundError, r"pip install 'fanin\[tune\]'")


def test_a_lost_executor_stops_the_search_and_keeps_its_trials(
    scenario: fanin.Scenario, tmp_path: Path
) -> None:
    def go(executor: Any) -> fanin.Tuning:
        return fanin.tune(
            scenario,
            over={"tor.buffer": "64 kB..1 MB"},
            minimise="mean",
            seeds=1,
            trials=6,
            out=tmp_path,
            executor=executor,
            progress=False,
        )

    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="the search stops; call it again to go on"):
        go(pool)
    found = go(None)
    assert [point.number for point in found.points] == list(range(6))
    assert {point.state for point in found.points} == {"complete"}
    assert os.path.exists(tmp_path / "study.journal")
