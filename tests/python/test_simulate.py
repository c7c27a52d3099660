"""Simulations from Python are those of the command, and can be followed and stopped."""

import json
import os
import pickle
import pty
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pandas
import polars
import polars.testing
import pyarrow
import pyarrow.parquet
import pytest

import fanin
from fanin.scenario import Setting

# A rack with events, watched queues and windows, in a fraction of a second.
RACK: dict[str, Setting] = {
    "readout.hosts": 8,
    "collectors.hosts_per_rack": 2,
    "run.warmup": "10 ms",
    "run.duration": "100 ms",
    "supervisor.rate": "100 Hz",
    "tor.buffer": "30 kB",
    "record.queues": ["tor->collector:*"],
    "record.windows": [0, 3],
}


@pytest.fixture(scope="module")
def scenario() -> fanin.Scenario:
    return fanin.Scenario.load("thesis-a-1000hz", RACK)


@pytest.fixture(scope="module")
def result(scenario: fanin.Scenario) -> fanin.Result:
    return scenario.simulate(seed=5, progress=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the command writes for the same scenario and seed."""
    out = tmp_path_factory.mktemp("command") / "five"
    sets = [f"--set={key}={json.dumps(value)}" for key, value in RACK.items()]
    command = [os.environ["FANIN_BIN"], "sim", "thesis-a-1000hz", *sets, "--seed", "5", "--quiet"]
    subprocess.run([*command, "--out", str(out)], check=True)
    return out


def without_cost(summary: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in summary.items() if key not in ("speed", "commit")}


def test_a_simulation_is_the_one_of_the_command_to_the_bit(result: fanin.Result, folder: Path) -> None:
    assert without_cost(result.summary) == without_cost(json.loads((folder / "summary.json").read_text()))
    assert result.end == "complete"
    assert result.diagnosis is None
    for name in ("events", "queues", "flows", "windows"):
        table = getattr(result, name)
        assert len(table) > 0, name
        polars.testing.assert_frame_equal(
            polars.DataFrame(table), polars.read_parquet(folder / f"{name}.parquet")
        )


def test_a_folder_is_loaded_when_it_is_asked_for(result: fanin.Result, folder: Path, tmp_path: Path) -> None:
    loaded = fanin.load(folder)
    assert loaded.name == "five"
    assert loaded.end == ""
    assert without_cost(loaded.summary) == without_cost(result.summary)
    assert polars.DataFrame(loaded.events).equals(polars.DataFrame(result.events))
    # Only what is asked for is read: the flows can be damaged without harm to the rest.
    result.write(tmp_path)
    (tmp_path / "flows.parquet").write_bytes(b"damaged")
    loaded = fanin.load(tmp_path)
    assert len(loaded.events) == len(result.events)
    with pytest.raises(ValueError, match=r"flows\.parquet"):
        _ = loaded.flows
    with pytest.raises(ValueError, match="is not a result"):
        fanin.load(tmp_path.parent)
    with pytest.raises(FileNotFoundError):
        fanin.load(tmp_path / "nothing.json")


def test_readers_of_arrow_take_tables_with_units(result: fanin.Result) -> None:
    table = pyarrow.table(result.events)
    assert table.num_rows == len(result.events) == result.summary["events"]["assigned"] + warmup(result)
    assert table.schema.field("collection_time_ps").metadata == {b"unit": b"ps"}
    assert table.schema.metadata[b"fanin.unit.size_bytes"] == b"bytes"
    assert result.events.units["ideal_ps"] == "ps"
    assert table.schema.field("id").type == pyarrow.uint64()
    assert pyarrow.schema(result.events) == table.schema
    frame = pandas.DataFrame.from_arrow(result.events)
    assert list(frame.columns) == result.events.columns == polars.DataFrame(result.events).columns
    assert frame["collection_time_ps"].tolist() == result.events["collection_time_ps"]
    # A stream is made anew for each reader, and one that is never read does no harm.
    for _ in range(3):
        result.events.__arrow_c_stream__()
    with pytest.raises(KeyError):
        _ = result.events["colour"]


def warmup(result: fanin.Result) -> int:
    """Return how many events were assigned before the measured time, or after it."""
    span = result.summary["measured_ps"]
    return sum(not span["from"] <= time < span["until"] for time in result.events["assigned_ps"])


def test_pictures_show_the_events_that_the_summary_counts(result: fanin.Result) -> None:
    times, ideals = result.measured_ms()
    events, figures = result.summary["events"], result.summary["collection_time_ms"]
    assert len(times) == events["collected"] < len(result.events)
    assert sum(times) / len(times) == pytest.approx(figures["mean"])
    assert max(times) == figures["max"]
    assert len(ideals) >= len(times)
    assert f"collection times of {len(times)} events" in result._repr_html_()


def test_the_schema_is_that_of_the_file(result: fanin.Result, folder: Path) -> None:
    written = pyarrow.parquet.read_schema(folder / "events.parquet")
    table = pyarrow.table(result.events)
    units = {key: value for key, value in written.metadata.items() if key.startswith(b"fanin.")}
    assert units == table.schema.metadata
    assert written.remove_metadata().equals(table.schema.remove_metadata())


def test_drops_are_counted_by_sample(result: fanin.Result) -> None:
    counts: dict[str, int] = {}
    for name, count in zip(result.queues["queue"], result.queues["drops"], strict=True):
        counts[name] = count
    counted: dict[str, int] = {}
    for name, count in zip(result.drops["queue"], result.drops["drops"], strict=True):
        assert count > 0
        counted[name] = counted.get(name, 0) + count
    assert counted == {name: count for name, count in counts.items() if count > 0}
    assert sum(counted.values()) > 0


def test_drops_have_one_schema_and_need_a_watched_queue(result: fanin.Result) -> None:
    lossless = {"tor.buffer": "10 MB", "run.duration": "50 ms", "record.queues": ["tor->collector:0"]}
    none = fanin.Scenario.load("incast", lossless).simulate(progress=False).drops
    assert len(none) == 0
    assert pyarrow.table(none).schema.types == pyarrow.table(result.drops).schema.types
    unwatched = fanin.Scenario.load("incast", {"run.duration": "300 ms"}).simulate(progress=False)
    with pytest.warns(fanin.RunWarning, match="record.queues") as caught:
        assert len(unwatched.drops) == 0
    assert caught[0].filename == __file__, "it names the line here"


def test_a_result_stays_in_its_process(result: fanin.Result) -> None:
    with pytest.raises(TypeError, match=r"does not travel to another process: `fanin.sweep` leaves results"):
        pickle.dumps(result)


def test_an_event_without_recorded_traffic_is_said(tmp_path: Path) -> None:
    rack = fanin.Scenario.load("thesis-a-1000hz", {**RACK, "record.events": [2, 4_000_000]})
    simulated = rack.simulate(progress=False)
    simulated.write(tmp_path)
    said = "no traffic was recorded of 4000000 in `record.events`: the run has events 0 to "
    for result in (simulated, fanin.load(tmp_path)):
        with pytest.warns(fanin.RunWarning, match=said) as caught:
            assert set(result.io["event"]) == {2}
        assert caught[0].filename == __file__, "it names the line here"
    assert "No traffic was recorded of 4000000 in record.events" in simulated.page()


def test_the_page_and_the_picture(result: fanin.Result, folder: Path) -> None:
    assert ElementTree.fromstring(result.page().removeprefix("<!DOCTYPE html>")).tag == "html"
    shown = result._repr_html_()
    ElementTree.fromstring(f"<div>{shown}</div>")
    assert "<svg" in shown
    assert result.verdict.split(".")[0] in shown
    assert "Incast" in repr(result)
    # A plan has no tables, and is shown all the same.
    assert "<svg" not in fanin.load(folder)._repr_html_().replace("<svg", "", 1)


def test_a_trace_is_that_of_the_tables(result: fanin.Result, tmp_path: Path) -> None:
    result.trace(tmp_path / "trace.json")
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    begun = [entry for entry in entries if entry["ph"] in "XB" and entry["name"].startswith("event ")]
    assert len(begun) == len(result.events)
    names = {entry["pid"]: entry["args"]["name"] for entry in entries if entry["name"] == "process_name"}
    counters = [entry for entry in entries if entry["ph"] == "C"]
    asked = [entry["name"] for entry in counters if names[entry["pid"]] in ("watched queues", "connections")]
    assert len(asked) == len(result.queues) + len(result.windows)
    assert set(asked) == {*result.queues["queue"], "connection 0", "connection 3"}
    assert {"goodput", "timeouts"} <= {
        entry["name"] for entry in counters if names[entry["pid"]] == "network"
    }


def test_a_trace_that_cannot_be_written_names_its_file(result: fanin.Result, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot write .*nowhere/a.json"):
        result.trace(tmp_path / "nowhere" / "a.json")


def test_a_table_that_is_missing_is_an_error(result: fanin.Result, tmp_path: Path) -> None:
    result.write(tmp_path)
    for name in ("events", "queues", "flows"):
        (tmp_path / f"{name}.parquet").unlink()
        loaded = fanin.load(tmp_path)
        with pytest.raises(FileNotFoundError, match=f"{name}.parquet"):
            getattr(loaded, name)
        with pytest.raises(FileNotFoundError, match=f"{name}.parquet"):
            loaded.page()
        result.write(tmp_path)
    # Only runs that were asked to record have these.
    assert not (tmp_path / "io.parquet").exists()
    assert len(fanin.load(tmp_path).io) == 0


def test_a_name_cannot_smuggle_markup() -> None:
    text = fanin.Scenario.load("incast").resolved()
    named = fanin.Scenario.load_text("<script>x</script>", text).simulate(duration="10 ms", progress=False)
    assert "<script>" not in named._repr_html_()


def test_progress_is_in_seconds(scenario: fanin.Scenario) -> None:
    calls: list[tuple[float, float]] = []

    def note(now: float, end: float) -> None:
        calls.append((now, end))
        # A short simulation may end before its first report: the third report ends this one.
        if len(calls) == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        scenario.simulate(duration="1000 s", progress=note)
    assert [now for now, _ in calls] == sorted(now for now, _ in calls)
    assert calls[-1][1] == pytest.approx(1000.01)


def test_an_exception_in_progress_ends_the_simulation(scenario: fanin.Scenario) -> None:
    def fail(_now: float, _end: float) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        scenario.simulate(duration="1000 s", progress=fail)


def test_other_threads_go_on_and_run_their_own(scenario: fanin.Scenario, result: fanin.Result) -> None:
    summaries: list[dict[str, Any]] = []

    def run() -> None:
        summaries.append(scenario.simulate(seed=5, progress=False).summary)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [without_cost(summary) for summary in summaries] == [without_cost(result.summary)] * 2


def test_ctrl_c_ends_a_simulation(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "import fanin\n"
        "def report(now, end):\n"
        "    print('running', flush=True)\n"
        "try:\n"
        "    fanin.Scenario.load('incast').simulate(duration='80000 s', progress=report)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.read().splitlines()[-1] == "interrupted"
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_the_last_progress_is_the_end(scenario: fanin.Scenario) -> None:
    calls: list[tuple[float, float]] = []
    scenario.simulate(duration="20 ms", progress=lambda now, end: calls.append((now, end)))
    assert calls[-1] == (0.03, 0.03), "with the warm-up"
    assert all(now <= end == 0.03 for now, end in calls)


def test_the_end_is_reached_once_events_in_progress_are_finished() -> None:
    # A rack in collapse needs far longer than its 51 ms to finish what it has begun.
    rack = fanin.Scenario.load("thesis-a-1000hz", {"run.warmup": "1 ms", "run.duration": "50 ms"})
    calls: list[tuple[float, float]] = []
    rack.simulate(progress=lambda now, end: calls.append((now, end)))
    assert [now < end for now, end in calls] == [True] * (len(calls) - 1) + [False]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what bars write into a terminal; they are drawn at once and each time."""
    from fanin import _terminal

    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", written.append)
    monkeypatch.setattr(_terminal, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(_terminal, "_REDRAW_SECONDS", 0.0)
    return written


def test_a_bar_shows_in_a_terminal_and_its_end_stays(
    drawn: list[str], scenario: fanin.Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fanin import _terminal

    update, close = _terminal.bar(True, "incast")
    assert update is not None
    time.sleep(0.01)
    update(1, 4)
    assert "25%" in drawn[0]
    assert "s left" in drawn[0]
    update(0.999999, 1)
    assert "99%" in drawn[-1], "100 % is the end"
    update(4, 4)
    close()
    assert "█ 100%, 0.0 s" in drawn[-2]
    assert drawn[-1] == "\n"
    drawn.clear()
    scenario.simulate(duration="200 ms", progress=True)
    assert "█ 100%, " in drawn[-2]
    assert drawn[-1] == "\n"
    # Tests have no terminal: nothing is shown there unless it is asked for.
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert _terminal.bar(None, "incast")[0] is None


def test_a_bar_says_where_it_was_stopped(drawn: list[str]) -> None:
    from fanin import _terminal

    update, close = _terminal.bar(True, "incast")
    assert update is not None
    time.sleep(0.01)
    update(1, 4)
    close()
    assert "░ stopped at 25%, 0.0 s" in drawn[-2]
    assert drawn[-1] == "\n"
    # Short work shows nothing, its end neither.
    drawn.clear()
    _terminal.bar(True, "incast")[1]()
    assert drawn == []


def test_a_bar_in_a_notebook_is_one_display_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from fanin import _terminal

    display = pytest.importorskip("IPython.display")
    shown: list[str] = []

    class Handle:
        def update(self, html: Any) -> None:
            shown.append(html.data)

    def show(html: Any, display_id: bool) -> Handle:
        assert display_id
        assert not shown, "one display, which is updated"
        shown.append(html.data)
        return Handle()

    monkeypatch.setattr(display, "display", show)
    monkeypatch.setattr(_terminal, "_is_notebook", lambda: True)
    monkeypatch.setattr(_terminal, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(_terminal, "_REDRAW_SECONDS", 0.0)
    for last, words in [(4, "100%, 0.0 s"), (2, "stopped at 50%, 0.0 s")]:
        shown.clear()
        update, close = _terminal.bar(None, "<b>")
        assert update is not None
        time.sleep(0.01)
        update(1, 4)
        update(last, 4)
        close()
        assert shown[0].startswith("&lt;b&gt; <progress value=")
        assert shown[-1].endswith(words)


def test_ctrl_c_closes_the_bar_of_a_terminal(tmp_path: Path) -> None:
    script = tmp_path / "long.py"
    script.write_text(
        "import fanin\n"
        "try:\n"
        "    fanin.Scenario.load('incast').simulate(duration='80000 s')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    terminal, of_child = pty.openpty()
    with subprocess.Popen([sys.executable, str(script)], stdout=of_child, stderr=of_child) as process:
        os.close(of_child)
        text = b""
        try:
            while b"s left" not in text:
                text += os.read(terminal, 4096)
            process.send_signal(signal.SIGINT)
            while b"interrupted" not in text:
                text += os.read(terminal, 4096)
            assert process.wait(20) == 0
        finally:
            process.kill()
            os.close(terminal)
    lines = text.decode().splitlines()
    assert "stopped at 0%" in lines[-2]
    assert lines[-1] == "interrupted", "the traceback of a user stands below the bar too"


def test_unsupported_scenarios_are_refused() -> None:
    scenario = fanin.Scenario.load(
        "incast", {"transport.congestion_control": "bbr", "transport.profile": "linux-2.6.32"}
    )
    with pytest.raises(ValueError, match="is not simulated"):
        scenario.simulate(progress=False)


def test_a_place_that_the_network_lacks_is_shown_with_its_line() -> None:
    text = 'extends = "incast"\nrun.duration = "10 ms"\nrecord.queues = ["tor->nowhere:0"]\n'
    scenario = fanin.Scenario.load_text("mine", text)
    with pytest.raises(fanin.ScenarioError, match=r'no queue is called "tor->nowhere:0"') as caught:
        scenario.simulate(progress=False)
    (problem,) = fanin.problems(caught.value)
    assert (problem.file, problem.line) == ("mine", 3)
    assert "^^^" in str(caught.value)


def test_figures_are_drawn(result: fanin.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    for draw in (result.plot.times, result.plot.timeline, result.plot.queues, result.plot.windows):
        axes = draw()
        assert axes.lines
        assert "(" in axes.get_xlabel(), "an axis names its unit"
        axes.figure.canvas.draw()
        assert draw(axes) is axes
        matplotlib.pyplot.close(axes.figure)
    bare = fanin.Scenario.load("incast").simulate(duration="50 ms", progress=False)
    with pytest.raises(ValueError, match=r"record\.queues"):
        bare.plot.queues()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"fanin\[plot\]"):
        bare.plot.times()
