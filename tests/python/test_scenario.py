"""Scenarios in Python are those of the command."""

import copy
import json
import pickle
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fanin


@pytest.mark.parametrize("name", fanin.presets())
def test_every_preset_loads_and_names_itself(name: str) -> None:
    scenario = fanin.Scenario.load(name)
    assert scenario.name == name
    assert scenario.settings["title"]


def test_values_of_python_are_values_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "incast"\n[workload]\nsenders = 32\n[link]\nrate = "10 Gb/s"\n')
    changed = fanin.Scenario.load("incast", {"workload.senders": 32, "link.rate": "10 Gb/s"})
    written = fanin.Scenario.load(file)
    assert changed.hash == written.hash != fanin.Scenario.load("incast").hash
    assert changed.settings == written.settings
    assert written.name == "mine"
    assert f'rate = "10 Gb/s"{" ":<33}# {file}:5' in written.resolved()


def test_a_resolved_scenario_is_a_scenario(tmp_path: Path) -> None:
    scenario = fanin.Scenario.load("thesis-a-1000hz", {"shaping.credits": 480})
    file = tmp_path / "resolved.toml"
    file.write_text(scenario.resolved())
    assert fanin.Scenario.load(file).hash == scenario.hash


def test_every_mistake_is_reported_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('[readout]\nhots = 3\n[run]\nduration = "10"\n')
    with pytest.raises(fanin.ScenarioError, match="did you mean `hosts`") as caught:
        fanin.Scenario.load(file)
    found = fanin.problems(caught.value)
    assert [(problem.file, problem.line) for problem in found] == [(str(file), 2), (str(file), 4)]
    assert isinstance(caught.value, ValueError)


def test_a_missing_scenario_names_the_nearest() -> None:
    with pytest.raises(fanin.ScenarioError) as caught:
        fanin.Scenario.load("incest")
    (problem,) = fanin.problems(caught.value)
    assert problem.line is None
    assert problem.help[0] == "did you mean the preset `incast`?"


def test_text_is_loaded_as_a_file_is() -> None:
    text = 'extends = "incast"\n[workload]\nsenders = 32\n'
    assert (
        fanin.Scenario.load_text("mine", text).hash
        == fanin.Scenario.load("incast", {"workload.senders": 32}).hash
    )


def test_a_setting_without_effect_is_a_warning() -> None:
    with pytest.warns(fanin.ScenarioWarning, match="senders"):
        fanin.Scenario.load("thesis-a-1000hz", {"workload.senders": 32})


def test_a_file_named_like_a_preset_needs_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "incast").write_text("extends = 'incast'\nworkload.senders = 3\n")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(fanin.ScenarioWarning, match=r"`incast` is the preset; write `\./incast`"):
        preset = fanin.Scenario.load("incast")
    assert preset.settings["workload"]["senders"] != 3
    with pytest.warns(fanin.ScenarioWarning, match="is the preset"):
        assert preset.replace({"run.seed": 2}).settings["workload"]["senders"] != 3
    assert fanin.Scenario.load("./incast").settings["workload"]["senders"] == 3


def test_a_scenario_is_replaced_and_never_changed(tmp_path: Path) -> None:
    scenario = fanin.Scenario.load("incast")
    other = scenario.replace(tor={"buffer": "1 MB"}, workload={"senders": 8})
    assert other.settings["tor"]["buffer"] == "1 MB"
    assert other.hash == scenario.replace({"tor.buffer": "1 MB", "workload.senders": 8}).hash
    assert other != scenario == fanin.Scenario.load("incast")
    # Settings that follow another one follow its new value, as with the command.
    profile = scenario.replace({"transport.profile": "linux-6"})
    assert profile.hash == fanin.Scenario.load("incast", {"transport.profile": "linux-6"}).hash
    settings = scenario.settings
    with pytest.raises(TypeError, match="replace"):
        settings["title"] = "x"
    with pytest.raises(TypeError, match="replace"):
        settings["tor"].update(buffer="1 MB")
    with pytest.raises(TypeError, match="replace"):
        del settings["tor"]["buffer"]
    with pytest.raises(TypeError, match="replace"):
        settings |= {"title": "x"}
    assert isinstance(scenario.settings["record"]["queues"], tuple)
    assert json.loads(json.dumps(scenario.settings))["run"] == scenario.settings["run"]
    assert copy.deepcopy(scenario.settings) == scenario.settings


def test_a_section_given_as_a_list_is_refused() -> None:
    tor: Any = [1]
    with pytest.raises(fanin.ScenarioError, match="a list, expected a section with keys") as caught:
        fanin.Scenario.load("incast").replace(tor=tor)
    (problem,) = fanin.problems(caught.value)
    assert "`tor` is a section; set one of its keys" in problem.help[0]


def test_a_file_that_changed_is_not_taken_for_the_scenario(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "incast"\n[workload]\nsenders = 32\n')
    scenario = fanin.Scenario.load(file)
    file.write_text('extends = "incast"\n[workload]\nsenders = 16\n')
    with pytest.raises(ValueError, match="has changed since"):
        scenario.replace(tor={"buffer": "1 MB"})


def test_a_scenario_travels_to_another_process(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "incast"\n[workload]\nsenders = 32\n')
    scenario = fanin.Scenario.load(file)
    packed = pickle.dumps(scenario)
    file.unlink()
    # Where it arrives, the file need not be.
    arrived = pickle.loads(packed)
    assert (arrived.name, arrived.hash) == ("mine", scenario.hash)
    assert pickle.loads(pickle.dumps(scenario.settings)) == scenario.settings


def test_an_error_prints_as_the_commands_does(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("[readout]\nhots = 3\n")
    with pytest.raises(fanin.ScenarioError) as caught:
        fanin.Scenario.load(file)
    printed = "".join(traceback.format_exception_only(caught.value))
    assert f"{file}:2:1" in printed
    assert "^^^^" in printed
    assert "\\n" not in printed
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert len(fanin.problems(pickle.loads(pickle.dumps(caught.value)))) == 1


def test_numbers_of_numpy_are_settings_and_other_objects_are_not() -> None:
    scenario = fanin.Scenario.load("incast")
    settings: dict[str, Any] = {"workload.senders": np.int64(9), "transport.rto_spread": np.float64(0.5)}
    changed = scenario.replace(settings)
    assert changed.settings["workload"]["senders"] == 9
    assert changed == scenario.replace({"workload.senders": 9, "transport.rto_spread": 0.5})
    wrong: list[Any] = [None, object(), 1j]
    for value in wrong:
        with pytest.raises(TypeError, match="a setting is a text, a number"):
            scenario.replace({"workload.senders": value})
