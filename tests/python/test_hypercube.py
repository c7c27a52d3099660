"""The cases that `scripts/hypercube.py` draws."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

import fanin

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "scripts" / "hypercube.py")
sys.path.insert(0, str(ROOT / "scripts"))

import hypercube  # noqa: E402  a script, found by the path above


def test_every_stratum_of_every_axis_is_used_once() -> None:
    points = hypercube.hypercube(random.Random(3), ("a", "b", "c"), 20)
    for axis in ("a", "b", "c"):
        assert sorted(int(point[axis] * 20) for point in points) == list(range(20))


@pytest.mark.parametrize("seed", range(5))
def test_every_drawn_case_can_be_played(seed: int, tmp_path: Path) -> None:
    for number, (base, settings) in enumerate(hypercube.draw(seed, 40)):
        path = tmp_path / f"{number}.toml"
        path.write_text(hypercube.case_file(settings, str(hypercube.BASES / base), "drawn"))
        scenario = fanin.Scenario.load(path)
        assert scenario.plan()["ideal"]["collection_time_ms"] < 1000, path.read_text()


def test_the_committed_cases_are_those_of_the_stated_seed(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, str(tmp_path), "--cases", "47", "--seed", "20261126"]
    subprocess.run(command, check=True, capture_output=True)
    drawn = {path.name: path.read_text() for path in tmp_path.glob("*.toml")}
    committed = {path.name: path.read_text() for path in (hypercube.BASES / "drawn").glob("drawn-*.toml")}
    assert {name: text.replace(f"{hypercube.BASES}/", "../") for name, text in drawn.items()} == committed


def test_no_cases_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, str(tmp_path), "--cases", "0"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "at least one case" in ended.stderr


def test_a_folder_with_cases_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, str(tmp_path), "--seed", "1", "--cases"]
    subprocess.run([*command, "3"], check=True, capture_output=True)
    ended = subprocess.run([*command, "2"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "has cases already" in ended.stderr
    assert len(list(tmp_path.glob("drawn-*.toml"))) == 3
