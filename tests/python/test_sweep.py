"""Sweeps run each point once, whatever becomes of workers, and agree with the command's."""

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars
import pytest
from batch import written

import fanin
from fanin.scenario import Setting

SENDERS = [4, 8, 16]


@pytest.fixture
def scenario() -> fanin.Scenario:
    return fanin.Scenario.load("incast", {"run.duration": "60 ms", "run.warmup": "1 ms"})


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in summary.items() if key not in ("speed", "commit")}


def test_points_are_those_of_single_simulations_and_run_once(
    scenario: fanin.Scenario, tmp_path: Path
) -> None:
    sweep = fanin.sweep(scenario, {"workload.senders": SENDERS}, seeds=[1, 2], out=tmp_path, progress=False)
    assert len(sweep) == 6
    seen = list(sweep)
    assert {point.folder for point in seen} == {point.folder for point in sweep.points}
    for point in sweep.points[::4]:
        alone = scenario.replace(dict(point.settings)).simulate(seed=point.seed, progress=False)
        assert figures(point.result.summary) == figures(alone.summary)
        assert polars.DataFrame(point.result.events).equals(polars.DataFrame(alone.events))
    before = written(tmp_path)
    # Again, and with more: what is there stays as it is.
    over = {"workload.senders": [*SENDERS, 2]}
    more = fanin.sweep(scenario, over, seeds=[1, 2], out=tmp_path, progress=False).run()
    after = written(tmp_path)
    assert len(after) == len(more) == 8
    assert before.items() <= after.items()
    # A changed scenario takes nothing from it.
    other = scenario.replace(tor={"buffer": "30 kB"})
    fanin.sweep(other, {"workload.senders": SENDERS}, seeds=[1], out=tmp_path, progress=False).run()
    assert len(written(tmp_path)) == 11


def test_the_command_and_python_share_points(scenario: fanin.Scenario, tmp_path: Path) -> None:
    fanin.sweep(scenario, {"workload.senders": [4, 8]}, seeds=[7], out=tmp_path, progress=False).run()
    before = written(tmp_path)
    sets = ["--set", "run.duration=60 ms", "--set", "run.warmup=1 ms", "--seed", "7"]
    command = [os.environ["FANIN_BIN"], "sim", "incast", *sets, "--sweep", "workload.senders=4,8,16"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path), "--resume", "--json", "-"], check=True, capture_output=True
    )
    after = written(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == 3
    sweep = fanin.sweep(scenario, {"workload.senders": SENDERS}, seeds=[7], out=tmp_path, progress=False)
    assert all(point.is_done for point in sweep.points)
    summaries = [point["summary"] for point in json.loads(done.stdout)["points"]]
    assert [figures(point.result.summary) for point in sweep] == [figures(summary) for summary in summaries]


def test_the_command_keeps_points_of_two_layouts_apart(scenario: fanin.Scenario, tmp_path: Path) -> None:
    fanin.sweep(scenario, {"workload.senders": [4]}, out=tmp_path, progress=False).run()
    before = written(tmp_path)
    sets = ["--set", "run.duration=60 ms", "--set", "run.warmup=1 ms", "--out", str(tmp_path)]
    command = [os.environ["FANIN_BIN"], "sim", "incast", *sets, "--sweep", "workload.senders=4"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds a sweep made with --resume: choose another folder" in done.stderr
    assert written(tmp_path) == before


def test_a_table_holds_settings_and_figures_with_units(scenario: fanin.Scenario) -> None:
    over: list[dict[str, Setting]] = [{"workload.senders": 4}, {"workload.senders": 8, "tor.buffer": "8 MB"}]
    sweep = fanin.sweep(scenario, over, progress=False)
    frame = polars.DataFrame(sweep.table("requests.time_ms.mean", "network.drops"))
    assert frame["workload.senders"].to_list() == [4, 8]
    assert frame["tor.buffer"].to_list() == [None, "8 MB"]
    assert frame["requests.time_ms.mean"].dtype == polars.Float64
    assert frame["network.drops"][1] == 0
    assert sweep.table("requests.time_ms.mean").units == {"requests.time_ms.mean": "ms"}
    assert "goodput_bps.total" in sweep.table().columns
    with pytest.raises(KeyError, match="colour"):
        sweep.table("colour")
    with pytest.raises(KeyError, match=r"no summary has network.drop; did you mean `network.drops`"):
        sweep.table("network.drop")


def test_a_sweep_loads_each_point_once(
    scenario: fanin.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "incast"\nrun.duration = "20 ms"\n')
    mine = fanin.Scenario.load(file)
    loads = []
    load = fanin.scenario._load

    def count(*arguments: Any) -> Any:
        loads.append(arguments)
        return load(*arguments)

    monkeypatch.setattr("fanin.scenario._load", count)
    sweep = fanin.sweep(mine, {"workload.senders": range(2, 12)}, seeds=[1, 2], out=tmp_path / "out")
    # The file is read once before and once after, to see that it is still the same.
    assert len(sweep) == 20
    assert len(loads) == len(sweep) + 2
    assert [point.seed for point in sweep.points[:3]] == [1, 2, 1]
    # A combination that comes twice is one point to run.
    twice = fanin.sweep(scenario, [{"workload.senders": 4}, {"workload.senders": 4}], out=tmp_path / "out")
    assert (len(twice), len(twice.asked)) == (1, 2)
    file.write_text('extends = "incast"\nrun.duration = "30 ms"\n')
    with pytest.raises(ValueError, match="has changed since it was loaded"):
        fanin.sweep(mine, {"workload.senders": [2]}, out=tmp_path / "out")


def test_a_result_that_was_cut_runs_again(scenario: fanin.Scenario, tmp_path: Path) -> None:
    sweep = fanin.sweep(scenario, {"workload.senders": [4, 8]}, out=tmp_path, progress=False).run()
    for name in ("summary.json", "picture.json", "scenario.toml", "report.html"):
        before = written(tmp_path)
        cut = sweep.points[0].folder / name
        whole = cut.read_text()
        cut.write_text(whole[: len(whole) // 2])
        assert [point.is_done for point in sweep.points] == [False, True], name
        table = sweep.table("requests.completed")
        after = written(tmp_path)
        assert len(table) == 2
        assert len(cut.read_text()) > len(whole) // 2
        assert [name for name in before if before[name] != after[name]] == [sweep.points[0].folder.name]
        assert {path.name for path in tmp_path.iterdir()} == set(after), "nothing else is left"


def test_wrong_points_are_refused_before_anything_runs(scenario: fanin.Scenario, tmp_path: Path) -> None:
    with pytest.raises(fanin.ScenarioError, match="did you mean"):
        fanin.sweep(scenario, {"workload.sender": [1]}, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(TypeError, match="not an executor"):
        fanin.sweep(scenario, {"workload.senders": [4]}, executor=7, out=tmp_path / "x")
    executor: Any = ProcessPoolExecutor
    with pytest.raises(TypeError, match=r"an object, such as `ProcessPoolExecutor\(…\)`, not the class"):
        fanin.sweep(scenario, {"workload.senders": [4]}, executor=executor, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"`out` is a folder, and .*file is a file"):
        fanin.sweep(scenario, {"workload.senders": [4]}, out=tmp_path / "file")
    for timeout in (0, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            fanin.sweep(scenario, {}, timeout=timeout)
    with pytest.raises(ValueError, match=r"`tor.buffer`: a setting is a finite number, not nan"):
        fanin.sweep(scenario, {"tor.buffer": [math.nan]})


def test_the_seed_is_swept_or_given_but_not_both(scenario: fanin.Scenario, tmp_path: Path) -> None:
    alone = fanin.sweep(scenario, {"run.seed": [4, 5, 6]}, out=tmp_path, progress=False)
    assert [point.seed for point in alone.points] == [4, 5, 6]
    assert alone.table("network.drops")["seed"] == [4, 5, 6]
    with pytest.raises(ValueError, match=r"`run.seed` is swept and `seeds` is given: leave one of them out"):
        fanin.sweep(scenario, {"run.seed": [4, 5, 6]}, seeds=[1], out=tmp_path)
    with pytest.raises(ValueError, match="leave one of them out"):
        fanin.sweep(scenario, [{"workload.senders": 4}, {"run.seed": 4}], seeds=2, out=tmp_path)


def test_one_rule_holds_for_all_seeds(scenario: fanin.Scenario, tmp_path: Path) -> None:
    def seeds_of(seeds: Any) -> list[int]:
        swept = fanin.sweep(scenario, {"workload.senders": [4]}, seeds=seeds, out=tmp_path, progress=False)
        return [point.seed for point in swept.asked]

    assert seeds_of(3) == [scenario.seed, scenario.seed + 1, scenario.seed + 2]
    assert seeds_of(np.arange(5, 7)) == seeds_of([5, 6, 5]) == [5, 6]
    wrong: list[tuple[type[Exception], Any]] = [
        (TypeError, [1.9]),
        (TypeError, [True]),
        (TypeError, "12"),
        (TypeError, 1.5),
        (ValueError, [-1]),
        (ValueError, [2**63]),
        (ValueError, 0),
        (ValueError, []),
    ]
    over: dict[str, Any] = {"workload.senders": [4, 8]}
    for error, seeds in wrong:
        for use in (
            lambda seeds=seeds: seeds_of(seeds),
            lambda seeds=seeds: fanin.tune(scenario, over=over, minimise="mean", seeds=seeds, out=tmp_path),
            lambda seeds=seeds: fanin.sensitivity(scenario, over, seeds=seeds, out=tmp_path),
        ):
            with pytest.raises(error, match=r"a seed is a whole number from 0|seeds") as raised:
                use()
            assert raised.type is error, "refused by the rule, not by a scenario or a trial"
    for seed in (-1, 1.5):
        with pytest.raises((TypeError, ValueError), match="a seed is a whole number from 0"):
            scenario.simulate(seed=seed)  # type: ignore[arg-type]
    assert not written(tmp_path)


def test_a_point_that_fails_or_takes_too_long_costs_only_itself(
    scenario: fanin.Scenario, tmp_path: Path
) -> None:
    over: list[dict[str, Setting]] = [
        {"workload.senders": 4},
        {"transport.congestion_control": "bbr", "transport.profile": "linux-2.6.32"},
        {"run.duration": "80000 s"},
    ]
    sweep = fanin.sweep(scenario, over, out=tmp_path, timeout=2.0, progress=False)
    with pytest.warns(fanin.RunWarning, match="2 of 3 points have no result") as caught:
        sweep.run()
    # It names the line here, not one of the package.
    assert caught[0].filename == __file__
    assert len(written(tmp_path)) == 1
    reasons = sorted(sweep.failed.values())
    assert "longer than 2 s" in reasons[0]
    assert "not simulated" in reasons[1]


def test_leaving_a_sweep_ends_its_simulations(scenario: fanin.Scenario, tmp_path: Path) -> None:
    over: list[dict[str, Setting]] = [{"workload.senders": 4}, {"run.duration": "80000 s"}]
    for point in fanin.sweep(scenario, over, out=tmp_path, progress=False):
        assert point.settings == over[0]
        break
    assert len(written(tmp_path)) == 1


def test_processes_take_points_and_a_lost_one_costs_its_own(scenario: fanin.Scenario, tmp_path: Path) -> None:
    sweep = fanin.sweep(scenario, {"workload.senders": range(2, 10)}, out=tmp_path, progress=False)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        sweep._executor = pool

        def run_and_kill() -> None:
            for _ in sweep:
                for process in list(pool._processes.values()):
                    process.kill()

        with pytest.warns(fanin.RunWarning, match="BrokenProcessPool"):
            run_and_kill()
    left = written(tmp_path)
    assert 0 < len(left) < len(sweep)
    # Without the executor that broke, only the rest runs.
    sweep._executor = None
    sweep.run()
    assert len(written(tmp_path)) == len(sweep)
    assert left.items() <= written(tmp_path).items()


def test_a_worker_of_another_version_says_so(scenario: fanin.Scenario, tmp_path: Path) -> None:
    def submit(work: Any, terms: Any, *more: Any) -> Any:
        return pool.submit(work, dataclasses.replace(terms, version="0.0.1"), *more)

    with ThreadPoolExecutor(1) as pool:
        executor = SimpleNamespace(submit=submit)
        sweep = fanin.sweep(scenario, {}, out=tmp_path, executor=executor, progress=False)
        said = f"it has Fanin {fanin.version}, and the sweep has 0.0.1: install one"
        with pytest.warns(fanin.RunWarning, match=said):
            sweep.run()
    assert not written(tmp_path)


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as local, distributed.Client(local) as client:
        yield client


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_survives_a_killed_and_a_hung_worker(
    cluster: Any, scenario: fanin.Scenario, tmp_path: Path
) -> None:
    killed, hung, _ = cluster.run(os.getpid).values()
    longer = scenario.replace(run={"duration": "2 s"})
    sweep = fanin.sweep(
        longer,
        {"workload.senders": range(4, 24)},
        out=tmp_path,
        executor=cluster,
        timeout=8.0,
        progress=False,
    )
    times: dict[str, int] = {}
    try:
        for number, point in enumerate(sweep):
            if number == 0:
                os.kill(killed, signal.SIGKILL)
            if number == 1:
                os.kill(hung, signal.SIGSTOP)
            times[point.folder.name] = (point.folder / "summary.json").stat().st_mtime_ns
    finally:
        # It has to go for the cluster to close.
        os.kill(hung, signal.SIGKILL)
    assert not sweep.failed
    assert written(tmp_path) == times
    assert len(times) == 20
    drafts = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(drafts) <= 2, "at most what two lost workers were writing"


def test_jobs_of_submitit_take_points(scenario: fanin.Scenario, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(timeout_min=1)
    sweep = fanin.sweep(
        scenario,
        {"workload.senders": [4, 8]},
        out=tmp_path / "out",
        executor=executor,
        tasks=1,
        progress=False,
    )
    assert len(sweep.run()) == len(written(tmp_path / "out")) == 2


@pytest.mark.parametrize("pool", ["nullcontext", "ThreadPoolExecutor", "ProcessPoolExecutor"])
def test_ctrl_c_ends_a_sweep_and_it_goes_on_later(pool: str, tmp_path: Path) -> None:
    # Of several long points one waits in the pool's own queue.
    script = tmp_path / "sweep.py"
    script.write_text(
        "import sys, fanin\n"
        "from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\n"
        "from contextlib import nullcontext\n"
        "if __name__ == '__main__':\n"
        "    scenario = fanin.Scenario.load('incast', {'run.duration': '60 ms'})\n"
        "    long = [{'run.duration': '80000 s', 'workload.senders': count} for count in (8, 9, 10, 11)]\n"
        "    over = [{'workload.senders': 4}, *long]\n"
        f"    with {pool}({'' if pool == 'nullcontext' else 2}) as pool:\n"
        "        sweep = fanin.sweep(\n"
        "            scenario, over, out=sys.argv[1], executor=pool, tasks=2, progress=False\n"
        "        )\n"
        "        for point in sweep:\n"
        "            print('done', flush=True)\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "out")]
    pipe = subprocess.PIPE
    # A terminal sends the signal to all processes of the session.
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
            time.sleep(0.5)
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert "KeyboardInterrupt" in errors
    assert len(written(tmp_path / "out")) == 1


def test_arrays_are_values_and_a_single_value_is_refused(tmp_path: Path) -> None:
    scenario = fanin.Scenario.load("incast", {"run.duration": "20 ms"})
    over: dict[str, Any] = {"workload.senders": np.arange(4, 6)}
    points = fanin.sweep(scenario, over, seeds=np.arange(1, 3), out=tmp_path, progress=False)
    assert points.table()["workload.senders"] == [4, 4, 5, 5]
    single: list[Any] = ["1 MB", 5]
    for value in single:
        with pytest.raises(TypeError, match=r"tor\.buffer needs a list of values"):
            fanin.sweep(scenario, {"tor.buffer": value}, progress=False)


def test_a_file_of_sizes_that_changes_meanwhile_leaves_no_wrong_result(tmp_path: Path) -> None:
    sizes = tmp_path / "sizes.csv"

    def write(size: int) -> None:
        rows = [f"0,{source},{size}" for source in range(4)]
        sizes.write_text("\n".join(["event,source,bytes", *rows]) + "\n")

    write(1000)
    settings: dict[str, Setting] = {
        "readout.hosts": 4,
        "readout.fragments_per_host": 1,
        "readout.fragment_size": {"distribution": "file", "path": str(sizes)},
        "run.duration": "20 ms",
        "run.warmup": "0 s",
    }
    scenario = fanin.Scenario.load("replay", settings)
    out = tmp_path / "out"
    sweep = fanin.sweep(scenario, {"collectors.units_per_host": [2, 4]}, out=out, progress=False)
    write(100_000)
    with pytest.warns(fanin.RunWarning, match="has changed since the scenario was loaded"):
        sweep.run()
    assert not written(out)
    with pytest.raises(ValueError, match="has changed since it was loaded"):
        scenario.replace({"collectors.units_per_host": 8})
    write(1000)
    sweep.run()
    assert len(written(out)) == 2
    for point in sweep.points:
        assert set(point.result.events["size_bytes"]) == {4000}


def test_an_iterator_gives_all_its_values(scenario: fanin.Scenario, tmp_path: Path) -> None:
    over: Any = {"workload.senders": iter((2, 3))}
    sweep = fanin.sweep(scenario, over, out=tmp_path, progress=False)
    assert sweep.run().table("network.drops")["workload.senders"] == [2, 3]


def test_a_key_without_values_and_a_folder_of_a_sweep_are_refused(
    scenario: fanin.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="at least one value"):
        fanin.sweep(scenario, {"workload.senders": []}, out=tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(ValueError, match="holds a sweep"):
        fanin.load(tmp_path)
    # A sweep of Python has no such file.
    points = fanin.sweep(scenario, {"workload.senders": [2]}, out=tmp_path / "points", progress=False).run()
    with pytest.raises(ValueError, match=r"has 1 folder with a result: [0-9a-f]{32}; load one of them"):
        fanin.load(points.folder)
    for name in ("a", "b", "c", "d"):
        next(iter(points)).result.write(tmp_path / "mixed" / name)
    with pytest.raises(
        ValueError, match="not a result, but has 4 folders with results: a, b, c, …; load one"
    ):
        fanin.load(tmp_path / "mixed")
    # A scenario is found from any working directory.
    (tmp_path / "mine.toml").write_text('extends = "incast"\n')
    monkeypatch.chdir(tmp_path)
    mine = fanin.Scenario.load("mine.toml")
    monkeypatch.chdir("/")
    assert mine.replace({"workload.senders": 3}).settings["workload"]["senders"] == 3
