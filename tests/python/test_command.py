"""Live runs and advice, by the command."""

import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars
import pytest

import fanin


@pytest.fixture
def scenario() -> fanin.Scenario:
    text = 'extends = "incast"\nrun.duration = "200 ms"\n[workload]\nsenders = 4\nrequest_size = "20 kB"\n'
    return fanin.Scenario.load_text("small", text)


def pretend(path: Path, code: int, text: str) -> Path:
    """Write a program that ends like the command."""
    path.write_text(f"#!/bin/sh\necho 'error: {text}' >&2\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_live_run_has_the_form_of_a_simulation(scenario: fanin.Scenario, tmp_path: Path) -> None:
    live = scenario.run(place="loopback", seed=5, duration="300 ms", out=tmp_path)
    assert (live.summary["kind"], live.summary["seed"]) == ("run", 5)
    assert live.summary["requests"]["completed"] > 0
    assert len(polars.DataFrame(live.events)) >= live.summary["requests"]["completed"]
    assert live.summary.keys() & scenario.simulate(progress=False).summary.keys() >= {
        "requests",
        "goodput_bps",
    }
    assert fanin.load(tmp_path).summary == live.summary
    assert live.scenario_toml is not None
    settings = fanin.Scenario.load_text("small", live.scenario_toml).settings
    assert (settings["workload"]["senders"], settings["run"]["duration"]) == (4, "300 ms")


def test_a_run_without_the_command_or_privileges_says_so(scenario: fanin.Scenario, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="the command `/nowhere/fanin` is not found: install it"):
        scenario.run(command="/nowhere/fanin")
    poor = pretend(tmp_path / "poor", 3, "network namespaces need root; `--loopback` needs none")
    with pytest.raises(PermissionError, match=r'^network namespaces need root; place="loopback" needs none$'):
        scenario.run(command=poor)
    with pytest.raises(ValueError, match="no place `moon`; choose from auto, loopback, namespaces"):
        scenario.run(place="moon")
    with pytest.warns(fanin.ScenarioWarning, match=r"`record.events` has no effect"):
        recorded = scenario.replace({"record.events": [1]})
    with pytest.raises(ValueError, match=r"record.events"):
        recorded.run(place="loopback")
    with pytest.raises(RuntimeError, match=r"^it broke$"):
        scenario.run(command=pretend(tmp_path / "broken", 1, "it broke"), out=tmp_path / "none")


def test_a_run_that_lost_events_warns_and_has_its_result(scenario: fanin.Scenario, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    scenario.simulate(progress=False).write(folder)
    lossy = pretend(tmp_path / "lossy", 1, "3 events were lost, 0 collected more than once")
    with pytest.warns(fanin.RunWarning, match="^3 events were lost"):
        assert scenario.run(command=lossy, out=folder).summary["kind"] == "sim"


def test_ctrl_c_ends_a_run_once_it_has_written(tmp_path: Path) -> None:
    script = (
        "import sys, fanin\n"
        "scenario = fanin.Scenario.load('incast', {'run.duration': '600 s', 'workload.senders': 2})\n"
        "scenario.run(place='loopback', out=sys.argv[1])\n"
    )
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(out)], stderr=subprocess.PIPE, text=True
    ) as process:
        while not (out / "live").is_dir():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(2)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert fanin.load(out).summary["requests"]["completed"] > 0


def test_advice_is_that_of_the_command(scenario: fanin.Scenario, tmp_path: Path) -> None:
    advice = scenario.advise(only="buffers", subject="drops=0", out=tmp_path)
    assert advice.subject == ("drops=0",)
    line, *without = advice.lines
    # One line names all buffers without an effect.
    assert [(other.name, other.meets) for other in without] == [("no effect", None)]
    assert (line.part, line.name, line.meets) == ("buffers", "tor.buffer", True)
    assert "is enough" in line.answer
    assert advice.part("buffers") == advice.lines
    assert advice.part("gear") == ()
    assert str(advice).startswith("tor.buffer  ")
    assert line.search is not None
    assert line.search["schema"] == "fanin.tune/1"
    # The search behind it is the one of `fanin tune`, so that its best point is a simulation in the folder.
    (best,) = line.search["best"]["folders"]
    assert line.folder is not None
    assert fanin.load(line.folder / best).summary["network"]["drops"] == 0


def test_wrong_wishes_for_advice_are_refused(scenario: fanin.Scenario) -> None:
    def refused(match: str, **wishes: Any) -> None:
        with pytest.raises(ValueError, match=match):
            scenario.advise(**wishes)

    refused("no part `hosts`; choose from buffers, laboratory, ranges, techniques, gear", only="hosts")
    refused("no figure `speed`", subject="speed<3")
    # No option of the command is named.
    refused("^(?!.*--)", subject="dropz")
    refused("cannot read the catalogue", catalogue="/nowhere/gear.toml", only="gear")
    refused("`seeds` is their number, from 1 to 1000, not 0", seeds=0)
    with pytest.raises(FileNotFoundError, match="no folder /nowhere of a measured laboratory"):
        scenario.advise(measured=["/nowhere"], only="buffers")
    with pytest.raises(ValueError, match="a seed is a whole number from 0 to 9223372036854775807, not -1"):
        scenario.run(seed=-1, place="loopback")


def test_a_scenario_from_text_and_one_from_a_file_are_handed_over(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}\ncat "$2" >> {seen}\nexit 2\n')
    spy.chmod(0o755)
    file = tmp_path / "mine.toml"
    file.write_text('extends = "incast"\n')
    for scenario in (fanin.Scenario.load(file), fanin.Scenario.load_text("mine", file.read_text())):
        with pytest.raises(ValueError):  # noqa: PT011
            scenario.replace({"workload.senders": 3}).advise(command=spy)
        words = seen.read_text().splitlines()
        assert words[0] == "advise"
        assert Path(words[1]).name == "mine.toml"
        assert "workload.senders=3" in words
        assert 'extends = "incast"' in words
    scenario = fanin.Scenario.load(file)
    file.write_text('extends = "incast"\nworkload.senders = 5\n')
    with pytest.raises(ValueError, match="has changed since"):
        scenario.advise(command=spy)
