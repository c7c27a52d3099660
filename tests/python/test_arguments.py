"""An argument of another type is named, with its value and with what is right; nothing runs before."""

from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin import figures
from fanin.mininet import import_script


@pytest.fixture
def scenario() -> fanin.Scenario:
    return fanin.Scenario.load("incast", {"run.duration": "20 ms"})


def refused(call: Any, named: str, value: object) -> None:
    """Check that a call raises, and its message names an argument and its value."""
    with pytest.raises(TypeError) as raised:
        call()
    said = str(raised.value)
    assert f"`{named}` is " in said, said
    assert said.endswith(f"not {value!r}"), said


@pytest.mark.parametrize("value", [5, 0.5, True, b"1 s", ["1 s"]])
def test_a_duration_is_a_text_with_a_unit(scenario: fanin.Scenario, value: Any) -> None:
    refused(lambda: scenario.simulate(duration=value), "duration", value)
    refused(lambda: scenario.run(duration=value, place="loopback"), "duration", value)


@pytest.mark.parametrize("value", [3, None, b"incast", ["incast"]])
def test_sources_and_folders_are_paths(scenario: fanin.Scenario, value: Any) -> None:
    refused(lambda: fanin.Scenario.load(value), "source", value)
    refused(lambda: fanin.load(value), "path", value)
    result = scenario.simulate(progress=False)
    refused(lambda: result.write(value), "folder", value)
    refused(lambda: result.trace(value), "path", value)
    refused(lambda: fanin.Scenario.load_text("mine", value), "text", value)
    if value is not None:
        refused(lambda: fanin.sweep(scenario, {}, out=value), "out", value)
        refused(lambda: figures.draw("m21tcp-5", out=value), "out", value)


@pytest.mark.parametrize("value", [3, "a=1", ["a"], [("run.seed", 1)]])
def test_settings_are_dictionaries(scenario: fanin.Scenario, value: Any) -> None:
    refused(lambda: fanin.Scenario.load("incast", value), "set", value)
    refused(lambda: scenario.replace(value), "set", value)
    refused(lambda: fanin.tune(scenario, over=value, minimise="mean"), "over", value)
    refused(lambda: fanin.sensitivity(scenario, value), "over", value)


def test_keys_are_texts(scenario: fanin.Scenario) -> None:
    key: Any = 3
    refused(lambda: scenario.replace({key: 1}), "a key of set", 3)
    refused(lambda: fanin.sweep(scenario, {key: [1]}), "a key of over", 3)
    refused(lambda: fanin.sweep(scenario, [{key: 1}]), "a key of a point of over", 3)


def test_arguments_of_a_sweep(scenario: fanin.Scenario, tmp_path: Path) -> None:
    over = {"workload.senders": [2]}

    def sweep(**changes: Any) -> Any:
        return lambda: fanin.sweep(**{"scenario": scenario, "over": over, "out": tmp_path, **changes}).run()

    for name, value in (
        ("scenario", "incast"),
        ("over", 3),
        ("over", "workload.senders"),
        ("seeds", "3"),
        ("seeds", 1.5),
        ("tasks", "2"),
        ("tasks", 1.5),
        ("tasks", True),
        ("timeout", "3"),
        ("timeout", True),
        ("progress", "yes"),
    ):
        refused(sweep(**{name: value}), name, value)
    refused(sweep(over=[3]), "a point of over", 3)
    assert not list(tmp_path.iterdir()), "nothing has run"


def test_arguments_of_a_search(scenario: fanin.Scenario, tmp_path: Path) -> None:
    good = {"over": {"workload.senders": "2..4"}, "minimise": "mean", "out": tmp_path}

    def tune(**changes: Any) -> Any:
        return lambda: fanin.tune(**{"scenario": scenario, **good, **changes})

    for name, value in (
        ("scenario", None),
        ("minimise", 3),
        ("subject", 3),
        ("trials", "3"),
        ("trials", 1.5),
        ("batch", "x"),
        ("durations", 3),
        ("durations", "1 s"),
        ("storage", 3),
        ("tasks", "x"),
    ):
        refused(tune(**{name: value}), name, value)
    refused(tune(subject=[3]), "subject", 3)
    refused(tune(durations=[3]), "durations", 3)
    for name, value in (("scenario", 3), ("of", 3), ("samples", "x"), ("samples", 2.5)):
        words: dict[str, Any] = {"scenario": scenario, "over": good["over"], name: value}
        refused(lambda words=words: fanin.sensitivity(**words), name, value)
    assert not list(tmp_path.iterdir()), "nothing has run"


def test_arguments_of_plans_advice_and_quantities(scenario: fanin.Scenario) -> None:
    for name in ("quantile", "fragment_mean"):
        words: dict[str, Any] = {name: 3}
        refused(lambda words=words: scenario.plan(**words), name, 3)
    for name in ("subject", "only", "measured"):
        words = {name: 3}
        refused(lambda words=words: scenario.advise(**words), name, 3)
    value: Any = 3
    refused(lambda: fanin.duration(value), "text", 3)
    refused(lambda: figures.draw("m21tcp-5", quality=value), "quality", 3)


def test_names_are_texts(tmp_path: Path) -> None:
    name: Any = ["multihost-4"]
    refused(lambda: figures.draw(name, out=tmp_path), "names", name)
    value: Any = 3
    refused(lambda: figures.chosen(value), "names", 3)
    refused(lambda: fanin.problems(value), "error", 3)
    refused(lambda: import_script("incast.py", collectors=value), "collectors", 3)
    refused(lambda: import_script(value, collectors="h1"), "path", 3)


def test_a_long_value_is_cut(scenario: fanin.Scenario) -> None:
    value: Any = ["x"] * 1000
    with pytest.raises(TypeError, match=r"`set` is a dictionary .*…$"):
        scenario.replace(value)
