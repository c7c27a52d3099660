"""Perfetto's own trace processor opens a trace and finds in it what the tables of the result hold."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fanin

ROOT = Path(__file__).resolve().parents[2]
PROCESSOR = ROOT / ".venv" / "perfetto"
SCRIPT = Path(__file__).with_name("trace_processor.mjs")


def query(trace: Path, *queries: str) -> list[list[dict[str, Any]]]:
    """Return the rows of each query on a trace."""
    if shutil.which("node") is None or not (PROCESSOR / "engine.mjs").is_file():
        pytest.skip("node or Perfetto's trace processor is missing: `scripts/setup.sh test` installs them")
    command = ["node", str(SCRIPT), str(PROCESSOR), str(trace), *queries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return answers


@pytest.fixture(scope="module")
def result() -> fanin.Result:
    rack: dict[str, fanin.scenario.Setting] = {
        "readout.hosts": 8,
        "collectors.hosts_per_rack": 2,
        "run.warmup": "10 ms",
        "run.duration": "400 ms",
        "supervisor.rate": "100 Hz",
        "tor.buffer": "30 kB",
        "record.queues": ["tor->collector:*"],
        "record.windows": [0, 3],
    }
    return fanin.Scenario.load("thesis-a-1000hz", rack).simulate(seed=5, progress=False)


def test_perfetto_finds_every_event_queue_and_window(result: fanin.Result, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    result.trace(trace)
    slices, timeouts, tracks, counters, complaints = query(
        trace,
        """SELECT slice.name, slice.category, slice.ts, slice.dur, thread.name AS unit, process.name AS host,
            EXTRACT_ARG(slice.arg_set_id, 'args.id') AS id,
            EXTRACT_ARG(slice.arg_set_id, 'args.timeouts') AS timeouts
        FROM slice JOIN thread_track ON slice.track_id = thread_track.id
        JOIN thread USING (utid) JOIN process USING (upid) ORDER BY slice.ts, slice.dur DESC""",
        "SELECT COUNT(*) AS n FROM slice WHERE category = 'event,timeout'",
        "SELECT process.name AS host, COUNT(*) AS units FROM thread JOIN process USING (upid) "
        "WHERE process.name GLOB 'collector *' AND thread.name GLOB 'unit *' GROUP BY host",
        """SELECT process.name AS host, process_counter_track.name AS track, COUNT(*) AS n, MAX(value) AS most
        FROM counter JOIN process_counter_track ON counter.track_id = process_counter_track.id
        JOIN process USING (upid) GROUP BY host, track""",
        "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'",
    )
    assert complaints == []

    events = result.events
    seen = {row["id"]: row for row in slices if row["name"].startswith("event ")}
    assert sorted(seen) == sorted(events["id"])
    for event, collector, unit, assigned, last, lost in zip(
        *(events[name] for name in ("id", "collector", "unit", "assigned_ps", "last_byte_ps", "timeouts")),
        strict=True,
    ):
        row = seen[event]
        assert (row["host"], row["unit"]) == (f"collector {collector}", f"unit {unit}")
        assert row["timeouts"] == lost
        # Perfetto's clock has nanoseconds. What never ended has no duration.
        assert abs(row["ts"] - assigned / 1000) <= 1
        assert row["dur"] == -1 if last is None else abs(row["dur"] - (last - assigned) / 1000) <= 2
    assert timeouts == [{"n": sum(lost > 0 for lost in events["timeouts"])}]
    assert timeouts[0]["n"] > 0, "a buffer of 30 kB drops frames"
    # The latest event has a slice for each of its requests and for each timeout, one within the other.
    requests, expired = ([row for row in slices if row["name"] == name] for name in ("request", "RTO"))
    assert len(requests) == len({row["unit"] for row in requests}) == 8
    assert expired
    for row in expired:
        around = next(request for request in requests if request["unit"] == row["unit"])
        assert around["ts"] <= row["ts"]
        assert row["ts"] + row["dur"] <= around["ts"] + around["dur"] + 1
    collections = [row for row in slices if row["name"] == "collection"]
    assert len(collections) == sum(last is not None for last in events["last_byte_ps"])
    units = set(zip(events["collector"], events["unit"], strict=True))
    assert {row["host"]: row["units"] for row in tracks} == {
        f"collector {collector}": sum(one == collector for one, _ in units) for collector, _ in units
    }

    queues, windows = result.queues, result.windows
    found = {(row["host"], row["track"]): row for row in counters}
    for name in set(queues["queue"]):
        sizes = [
            size for one, size in zip(queues["queue"], queues["queue_bytes"], strict=True) if one == name
        ]
        assert found["watched queues", f"{name} bytes"]["n"] == len(sizes)
        assert found["watched queues", f"{name} bytes"]["most"] == max(sizes)
    for flow in set(windows["flow"]):
        sizes = [
            size for one, size in zip(windows["flow"], windows["cwnd_bytes"], strict=True) if one == flow
        ]
        assert found["connections", f"connection {flow} cwnd_bytes"]["most"] == max(sizes)


def test_perfetto_finds_the_occupancy_of_each_ring(tmp_path: Path) -> None:
    small: dict[str, fanin.scenario.Setting] = {
        "readout.hosts": 4,
        "collectors.hosts_per_rack": 3,
        "run.duration": "20 ms",
    }
    result = fanin.Scenario.load("multihost", small).simulate(seed=2, progress=False)
    trace = tmp_path / "trace.json"
    result.trace(trace)
    counters, complaints = query(
        trace,
        """SELECT process.name AS port, track.name AS track, MAX(value) AS most, MIN(value) AS least,
            COUNT(*) AS n FROM counter JOIN process_counter_track AS track ON counter.track_id = track.id
        JOIN process USING (upid) WHERE process.name GLOB 'port *' GROUP BY port, track""",
        "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'",
    )
    assert complaints == []
    rings = [row for row in counters if row["track"].startswith("ring ")]
    # Each collector has its ring at the port of the software queues that leads to it.
    assert {row["track"] for row in rings} == {f"ring collector:{place} bytes" for place in range(3)}
    assert all(row["port"].startswith("port software") for row in rings)
    assert all(row["n"] > 2 and row["least"] == 0 for row in rings), "they fill and empty"
    assert max(row["most"] for row in rings) == result.summary["daqring"]["bytes_max"]
    queues = {row["port"]: row["most"] for row in counters if row["track"] == "queue bytes"}
    assert all(row["most"] <= queues[row["port"]] for row in rings), "a port holds its rings"
