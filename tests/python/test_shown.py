"""Objects show what they are, in a terminal and in a notebook."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import fanin
from fanin._fanin import RecordTable


def cells(html: str) -> list[list[str]]:
    """Return the texts of a table's rows; what is no well-formed XML is an error."""
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


@pytest.fixture(scope="module")
def scenario() -> fanin.Scenario:
    return fanin.Scenario.load("incast", {"run.duration": "20 ms", "workload.senders": 4})


def test_a_scenario_shows_its_name_and_what_was_set(scenario: fanin.Scenario) -> None:
    again = scenario.replace(workload={"senders": 8})
    assert repr(again) == '<fanin.Scenario incast, run.duration = "20 ms", workload.senders = 8>'
    html = ElementTree.fromstring(again._repr_html_())
    text = "".join(html.itertext())
    assert text.startswith("incast")
    assert again.settings["title"] in text
    assert [code.text for code in html.iter("code")] == ['run.duration = "20 ms"', "workload.senders = 8"]


def test_a_table_shows_its_first_rows_with_units(scenario: fanin.Scenario) -> None:
    events = (
        scenario.replace({"tor.buffer": "8 MB", "run.duration": "200 ms"}).simulate(progress=False).events
    )
    assert repr(events).startswith(f"<fanin.RecordTable, {len(events)} rows: id, size_bytes, ")
    head, *rows = cells(events._repr_html_())
    assert head[1] == "size_bytesbytes"
    assert len(rows) == 5 < len(events)
    assert [row[0] for row in rows] == [str(id) for id in events["id"][:5]]
    columns: dict[str, list[object]] = {"<a>": ["x & y", None], "b": [1.5, 2.0]}
    small = RecordTable.of_columns(columns, {"b": "ms"})
    assert cells(small._repr_html_()) == [["<a>", "bms"], ["x & y", "1.5"], ["", "2"]]
    one: dict[str, list[object]] = {"a": [1]}
    assert repr(RecordTable.of_columns(one, {})) == "<fanin.RecordTable, 1 row: a>"
    empty: dict[str, list[object]] = {"a": []}
    assert cells(RecordTable.of_columns(empty, {})._repr_html_()) == [["a"]]


def test_a_sweep_shows_how_much_is_done(scenario: fanin.Scenario, tmp_path: Path) -> None:
    sweep = fanin.sweep(scenario, {"workload.senders": [2, 3]}, out=tmp_path, progress=False)
    assert repr(sweep) == f"<fanin.Sweep, 0 of 2 points done, in {tmp_path}>"
    next(iter(sweep))
    assert "of 2 points done" in repr(sweep)
    assert repr(sweep.run()) == f"<fanin.Sweep, 2 of 2 points done, in {tmp_path}>"


def test_advice_shows_its_lines() -> None:
    line: dict[str, Any] = {"part": "buffers", "about": "", "search": None, "folder": None}
    lines = (
        fanin.AdviceLine(name="tor.buffer", answer="1 MB is enough", meets=True, **line),
        fanin.AdviceLine(name="core.buffer", answer="<none>", meets=None, **line),
    )
    advice = fanin.Advice(("drops=0",), lines)
    assert repr(advice).splitlines() == [
        "<fanin.Advice, drops=0>",
        "tor.buffer   1 MB is enough",
        "core.buffer  <none>",
    ]
    assert cells(advice._repr_html_()) == [
        ["✓", "tor.buffer", "1 MB is enough"],
        ["", "core.buffer", "<none>"],
    ]


def test_of_many_queues_the_deepest_have_names() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    watched: dict[str, fanin.scenario.Setting] = {
        "collectors.hosts_per_rack": 9,
        "readout.hosts": 4,
        "run.duration": "20 ms",
        "run.warmup": "1 ms",
        "record.queues": ["tor->collector:*"],
    }
    axes = fanin.Scenario.load("thesis-a-1000hz", watched).simulate(progress=False).plot.queues()
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(axes.lines) == 9
    assert len(names) == 4, "three and the others"
    assert names[0] == "6 others"
    assert all(name.startswith("tor:0->collector:") for name in names[1:])
    matplotlib.pyplot.close(axes.figure)
