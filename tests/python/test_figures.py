"""The papers' figures: the table names them all, each draws, and a gallery that is out of date is noticed."""

import dataclasses
import json
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.figure
import pytest

from fanin import figures
from fanin.figures import drawing, engine, gallery
from fanin.figures.__main__ import main as command
from fanin.figures.measure import Measured, quantile
from fanin.figures.spec import Figure, Run

#: Result figures by paper, and techniques; LCN'15 is slides, whose figures have no numbers.
IN_THE_PAPERS = {
    "thesis": {
        *(f"4.{n}" for n in range(3, 13)),
        *(f"5.{n}" for n in range(4, 10)),
        *(f"6.{n}" for n in range(1, 14)),
    },
    "icc15": {str(n) for n in range(2, 12)},
    "lcn15": {"bandwidth", "rate-limit", "buffering", "memory bandwidth", "power"},
    "multihost": {"3", "4", "6"},
    "m21tcp": {str(n) for n in range(4, 10)},
    "technique": {"DIATCP", "ICTCP", "Swift", "SIRD", "barrel shifter"},
}
UNIT = re.compile(r"\((ms|µs|kB|MB|MTUs|%|GB/s|Gb/s|Mb/s)\)$")
#: Axes of numbers that have no unit.
COUNTS = {
    "area ratio",
    "credits",
    "dropped frames per event",
    "events of a phase",
    "events under way for each collector",
    "fraction of the events",
    "fragments requested",
    "frames of the ring",
    "outstanding credit B (BDPs)",
    "ports for hosts",
    "price ratio",
    "senders",
    "share of the events",
}
#: One figure of each way of drawing, all of them small.
DRAWN = (
    "thesis-4.7",
    "lcn15-buffering",
    "icc15-2",
    "icc15-6",
    "icc15-11",
    "multihost-4",
    "m21tcp-4",
    "m21tcp-5",
    "technique-ictcp",
)


def test_the_table_names_every_result_figure_of_the_papers() -> None:
    names = {paper: set[str]() for paper in figures.PAPERS}
    for figure in figures.FIGURES:
        names[figure.paper].add(figure.number)
    for other in figures.UNDRAWN:
        if "diagram" not in other.reason:
            names[other.paper].add(other.number)
    assert names == IN_THE_PAPERS
    assert len({figure.name for figure in figures.FIGURES}) == len(figures.FIGURES)


@pytest.mark.parametrize("name", DRAWN)
def test_figures_draw_from_tiny_runs_once(name: str, tmp_path: Path) -> None:
    first = figures.draw(name, out=tmp_path, quality=figures.TINY, is_quiet=True)
    assert [one.failed for one in first] == [""]
    (svg, png) = first[0].paths
    assert svg.name == f"{name}.svg"
    assert png.read_bytes().startswith(b"\x89PNG")
    picture = svg.read_text()
    for panel in first[0].figure.panels:
        # Texts are texts in the picture; the axes have their units.
        assert panel.x.replace("&", "&amp;") in picture
        assert panel.y in picture
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs-tiny/*/summary.json")}
    assert len(stored) == len(first[0].figure.runs(figures.TINY))
    again = figures.draw(name, out=tmp_path, quality=figures.TINY, is_quiet=True)
    assert {path: path.stat().st_mtime_ns for path in stored} == stored
    assert again[0].paths[0].read_text() == picture


class Probe(Measured):
    """Stands for the results of a run where captions are only checked."""

    def __init__(self) -> None:
        super().__init__([], 0.0)

    def __getattribute__(self, name: str) -> float:
        """Return 1 for what results have."""
        if not hasattr(Measured, name):
            raise AttributeError(f"a caption reads {name}, which nothing measures")
        return 1.0


@pytest.mark.parametrize("figure", figures.FIGURES, ids=lambda figure: figure.name)
def test_captions_read_series_that_exist(figure: Figure) -> None:
    asked: list[Run] = []

    def look(run: Run) -> Measured:
        asked.append(run)
        return Probe()

    caption = engine.numbers_of(figure, look)
    assert "{" not in caption
    # A caption without a number of the run says nothing.
    fields = [name for _, name, _, _ in string.Formatter().parse(figure.caption) if name]
    assert fields
    assert asked or figure.facts is not None
    assert all(text.endswith(".") for text in (figure.stated, caption, figure.why))


class Sample(Measured):
    """Stands for a run with two hundred events, to draw every figure without a simulation."""

    def __init__(self, place: int) -> None:
        super().__init__([], 0.0)
        # A mean of its own for each run: boxes that are mixed up are noticed.
        self._events = [(10.0 + place + n / 10, n % 2) for n in range(200)]

    @property
    def ideal_ms(self) -> float:
        return 8.0

    @property
    def own_ideal_ms(self) -> float:
        return 7.0

    def _each(self, *path: str) -> Iterator[float]:
        yield 1e9

    def averaged(self, *path: str) -> float:
        return 1e9

    def table(self, name: str) -> dict[str, list[float]]:
        """Return a table of two rows, one second from the start."""
        rows: dict[str, list[float]] = {"id": [0, 1], "event": [0, 0], "first_request_ps": [0, 1]}
        rows["time_ps"] = [1e12, 1.001e12]
        sizes = (
            *("to_collector_bytes", "from_collector_bytes"),
            *("queue_bytes", "cwnd_bytes", "in_flight_bytes"),
        )
        return {**rows, "since_request_ps": [0, 1e9], **{size: [1000, 2000] for size in sizes}}


@pytest.mark.parametrize("figure", figures.FIGURES, ids=lambda figure: figure.name)
def test_every_series_is_drawn_on_axes_with_units(figure: Figure) -> None:
    samples: dict[Run, Sample] = {}

    def look(run: Run) -> Measured:
        return samples.setdefault(run, Sample(len(samples)))

    for panel in figure.panels:
        for words in (panel.x, panel.y):
            assert UNIT.search(words) or words in COUNTS, f"{words!r} has no unit"
        axes = matplotlib.figure.Figure().subplots()
        panel.draw(axes, panel, look)
        handles, labels = axes.get_legend_handles_labels()
        lines: list[Any] = list(axes.lines)
        if panel.draw is drawing.boxes:
            # The mean of each box, with whiskers at the 1st and 99th percentile.
            (runs,) = [one.runs for one in panel.series]
            means = [line for line in lines if line.get_marker() == "o" and len(line.get_xdata())]
            assert [mean.get_ydata()[0] for mean in means] == [look(run).mean_ms for _, run in runs]
            (ideal,) = [line for line in lines if line.get_label() == "events' mean ideal"]
            assert set(ideal.get_ydata()) == {7.0}, "no event is faster than its own ideal"
            ends = {float(y) for line in lines for y in line.get_ydata()}
            assert {end for _, run in runs for end in (look(run).p1_ms, look(run).p99_ms)} <= ends
        else:
            assert {one.label for one in panel.series} <= set(labels)
        if panel.draw is drawing.values:
            points = {str(line.get_label()): len(line.get_xdata()) for line in lines}
            assert {one.label: len(one.runs) for one in panel.series}.items() <= points.items()
        assert handles
        assert axes.has_data()


def test_quantiles_are_values_that_occurred() -> None:
    values = [float(n) for n in range(1, 201)]
    assert (quantile(values, 0.01), quantile(values, 0.5), quantile(values, 0.99)) == (2.0, 100.0, 198.0)
    assert quantile([], 0.5) == float("inf")


def test_unknown_names_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="is no figure"):
        figures.chosen(["thesis-9.9"])
    with pytest.raises(ValueError, match="hardware"):
        figures.chosen(["lcn15-power"])
    assert len(figures.chosen(["m21tcp", "icc15-7"])) == 7
    assert len(figures.chosen("m21tcp")) == 6
    with pytest.raises(ValueError, match="m21 is no figure"):
        figures.chosen("m21")


@pytest.mark.parametrize("page", ["techniques.md", "networks.md"])
def test_every_technique_has_a_picture(page: str) -> None:
    # These sections are no techniques: tables of means, and descriptions of networks and traffic.
    others = {
        "On the kernel's own TCP",
        *("Hybrid", "Leaf-spine planes", "Push and all-to-all", "Collection in steps"),
        "Memory of the readouts, and real sizes",
    }
    _, *sections = re.split(r"^## ", (gallery.PAGE.parent / page).read_text(), flags=re.MULTILINE)
    without = {one.partition("\n")[0] for one in sections if "\n![" not in one}
    assert without <= others, "draw a figure for it in fanin.figures"


def test_the_gallery_is_up_to_date() -> None:
    assert not gallery.check(), "run `make figures GALLERY=1`, with ONLY=NAME for some"


def test_a_stale_gallery_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = next(one for one in figures.FIGURES if one.name == "m21tcp-5")
    assert not [line for line in gallery.check([figure]) if figure.name in line]
    changed = dataclasses.replace(figure, caption=figure.caption + " More.")
    assert "changed" in gallery.check([changed])[0]
    (panel,) = figure.panels
    (series,) = panel.series
    ((x, run),) = series.runs
    longer = dataclasses.replace(series, runs=((x, run.set("tor.buffer", "65 KiB")),))
    changed = dataclasses.replace(figure, panels=(dataclasses.replace(panel, series=(longer,)),))
    assert "changed" in gallery.check([changed])[0]
    record = {figure.name: json.loads(gallery.RECORD.read_text())[figure.name]}
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    assert any("not in the gallery" in line for line in gallery.check([figure]))
    (tmp_path / f"{figure.name}.svg").write_text("<svg/>")
    assert any("not the one that was drawn" in line for line in gallery.check([figure]))
    (tmp_path / "m21tcp-99.svg").write_text("<svg/>")
    monkeypatch.setattr(gallery, "read_record", lambda: record)
    wrong = gallery.check([figure])
    assert "m21tcp-99.svg: no such figure" in wrong
    assert "gallery.md: not the page of its record" in wrong


def test_the_simulator_still_gives_the_gallery_its_numbers(tmp_path: Path) -> None:
    (drawn,) = figures.draw("m21tcp-5", out=tmp_path, is_quiet=True)
    assert drawn.numbers == gallery.read_record()["m21tcp-5"]["numbers"], (
        "results changed: draw the gallery again"
    )
    parts = [
        f"The paper states: {drawn.figure.stated}",
        f"We get: {drawn.numbers}",
        f"Why: {drawn.figure.why}",
    ]
    assert drawn.caption.splitlines() == parts
    (run,) = drawn.figure.runs(figures.GALLERY)
    look = engine.Store(tmp_path / "runs-gallery", figures.GALLERY).look
    # The picture shows five waits; the caption counts them.
    assert (look(run).flats, drawn.numbers[:22]) == (5, "5 such periods, and 5 ")
    assert look(run).own_ideal_ms <= look(run).least_ms


def test_a_list_may_be_cut_by_its_reader() -> None:
    command = f"{sys.executable} -m fanin.figures --list | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("thesis-4.3")
    assert done.stderr == ""


def test_ctrl_c_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_draw", interrupted)
    assert command(["m21tcp-5", "--out", str(tmp_path)]) == 130
    assert f"the same command goes on with what {tmp_path} has" in capsys.readouterr().err


def test_the_command_says_why_and_refuses_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["m21tcp-5", "--out", str(tmp_path / "out")]) == 0
    assert f"Why: {figures.chosen('m21tcp-5')[0].why}" in capsys.readouterr().out

    def refused(match: str, *arguments: str) -> None:
        with pytest.raises(SystemExit, match="2"):
            command(arguments)
        assert match in capsys.readouterr().err

    file = tmp_path / "file"
    file.touch()
    refused(f"cannot write into {file}: File exists", "m21tcp-5", "--out", str(file))
    refused("m21 is no figure", "m21")
    monkeypatch.setattr(gallery, "PAGE", tmp_path / "gallery.md")
    for option in ("--check", "--gallery"):
        refused("part of a clone of the repository", option)


def test_three_panels_are_no_wider_than_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widths: dict[int, float] = {}
    (figure,) = figures.chosen(["m21tcp-4"])
    (panel,) = figure.panels
    drawn: list[Any] = []
    monkeypatch.setattr(drawing, "_legend", drawn.append)
    empty = dataclasses.replace(panel, series=(), draw=lambda *_: None)
    for count in (2, 3):
        some = dataclasses.replace(figure, panels=(empty,) * count)
        drawing.save(some, lambda run: pytest.fail(f"{run} is drawn"), tmp_path, figures.TINY)
        widths[count] = drawn[-1].get_figwidth()
        assert len(drawn[-1].axes) == count, "no empty panel"
    assert widths[2] == widths[3]
