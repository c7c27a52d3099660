"""Sensitivities are those that can be computed by hand."""

import math
import sys
from pathlib import Path
from typing import Any

import polars
import pytest

import fanin


@pytest.fixture
def scenario() -> fanin.Scenario:
    """Return an incast without loss, in which a request lasts as long as its bytes take on one link."""
    text = 'extends = "incast"\nrun.duration = "20 ms"\nlink.delay = "1 us"\n'
    text += 'workload.senders = 4\ntor.buffer = "64 MB"\n'
    return fanin.Scenario.load_text("small", text)


def written(folder: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("[!.]*/summary.json")}


def test_indices_of_sobol_are_those_of_a_product(scenario: fanin.Scenario, tmp_path: Path) -> None:
    over = {"workload.request_size": "50 kB..500 kB", "link.rate": "1 Gb/s..10 Gb/s"}
    found = fanin.sensitivity(scenario, over, method="sobol", samples=64, out=tmp_path, progress=False)
    # A time is bytes / rate, so with r = 10 and both even on a logarithmic scale:
    r = 10.0
    mean, square = (r - 1) / math.log(r), (r * r - 1) / (2 * math.log(r))
    variance = square - mean**2
    first = variance * mean**2 / (square**2 - mean**4)
    size, rate = found.effects
    assert (size.key, rate.key, size.figure) == ("workload.request_size", "link.rate", "mean")
    for effect in (size, rate):
        one, total = effect.values["S1"], effect.values["ST"]
        assert one is not None
        assert total is not None
        assert one == pytest.approx(first, abs=0.15)
        assert total == pytest.approx(1 - first, abs=0.15)
    assert len(found.sweep) <= 64 * (len(over) + 2)
    before = written(tmp_path)
    again = fanin.sensitivity(scenario, over, method="sobol", samples=64, out=tmp_path, progress=False)
    assert again.effects == found.effects
    assert written(tmp_path) == before, "no point runs twice"


def test_morris_ranks_settings_for_each_figure(scenario: fanin.Scenario, tmp_path: Path) -> None:
    over: dict[str, Any] = {
        "link.delay": "1 us..2 us",
        "workload.request_size": "50 kB..500 kB",
        "transport.rto_min": ["100 ms", "200 ms"],
    }
    figures = ["mean", "drops", "goodput_bps.total"]
    found = fanin.sensitivity(
        scenario, over, of=figures, samples=6, seeds=[1, 2], out=tmp_path, progress=False
    )
    assert found.ranking()[0] == "workload.request_size"
    frame = polars.DataFrame(found.table())
    assert frame["figure"].to_list() == [figure for figure in figures for _ in over]
    assert frame["key"].to_list() == list(over) * 3
    assert frame["unit"].to_list() == ["ms"] * 3 + [None] * 3 + ["bit/s"] * 3
    times = frame.filter(polars.col("figure") == "mean")
    # Four answers, 50 to 500 kB, at 1 Gb/s: the whole range is about 15 ms.
    assert times["mu"][1] == pytest.approx(15, rel=0.5)
    assert times["mu_star"][2] == 0, "no timer expires without loss"
    assert frame.filter(polars.col("figure") == "drops")["mu_star"].to_list() == [0, 0, 0]
    assert "request_size" in repr(found)
    with pytest.raises(KeyError, match="p50"):
        found.ranking("p50")


def test_a_figure_that_never_changes_has_no_shares(scenario: fanin.Scenario, tmp_path: Path) -> None:
    found = fanin.sensitivity(
        scenario,
        {"link.delay": "1 us..2 us"},
        of="drops",
        method="sobol",
        samples=2,
        out=tmp_path,
        progress=False,
    )
    assert found.effects[0].values == {"S1": None, "S1_conf": None, "ST": None, "ST_conf": None}


def test_an_unknown_figure_ends_the_sweep_at_its_first_point(
    scenario: fanin.Scenario, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"has no `network.dropz`; did you mean `network.drops`\?"):
        fanin.sensitivity(
            scenario,
            {"link.delay": "1 us..2 us", "tor.buffer": "64 kB..128 kB"},
            of="network.dropz",
            samples=10,
            out=tmp_path,
            tasks=1,
            progress=False,
        )
    # Of about thirty points: those of the first tasks that were under way.
    assert 1 <= len(written(tmp_path)) <= 15


def test_mistakes_are_refused(
    scenario: fanin.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(error: type[Exception], match: str, **changes: Any) -> None:
        wanted: dict[str, Any] = {"over": {"link.delay": "1 us..2 us"}, "samples": 2, **changes}
        with pytest.raises(error, match=match):
            fanin.sensitivity(scenario, out=tmp_path, progress=False, **wanted)

    refused(ValueError, "no method `fast`; the methods are morris, sobol", method="fast")
    refused(ValueError, "no figure `speed`; the figures are", of="speed")
    refused(ValueError, "at least one figure", of=[])
    refused(ValueError, "a power of 2 for sobol, not 6", method="sobol", samples=6)
    refused(ValueError, "nothing to vary", over={})
    refused(fanin.ScenarioError, "did you mean", over={"link.dely": None})
    refused(ValueError, "has no `network.colour`", of="network.colour")
    refused(ValueError, "`run.seed` is not varied here", over={"run.seed": "1..9"})
    refused(ValueError, "has no `p99`", of="p99")
    monkeypatch.setitem(sys.modules, "SALib", None)
    monkeypatch.setitem(sys.modules, "SALib.analyze", None)
    refused(ModuleNotFoundError, r"pip install 'fanin\[sensitivity\]'")
