"""Scenarios in Python are those of the command."""

from pathlib import Path

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
