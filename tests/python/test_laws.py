"""Laws that hold between runs of random scenarios, and between the tables and the summary of one run."""

import math
import os
import random
from collections.abc import Mapping
from typing import Any

import polars
import pytest

import fanin
from fanin.scenario import Setting

# Each law is tried on this number of random scenarios. `.ci/nightly` begins at other numbers.
DRAWS = 20
FIRST = int(os.environ.get("FANIN_LAWS_SEED", "0"))
over_random_scenarios = pytest.mark.parametrize("number", range(FIRST, FIRST + DRAWS))
# The header of an answer to a request (docs/message.md).
ANSWER_HEADER_BYTES = 22

# A star of senders that answers one collector. No time is drawn at random.
STAR: dict[str, Setting] = {
    "run.warmup": "0 s",
    "workload.service_delay_max": "0 s",
    "transport.congestion_control": "newreno",
}
RACK: dict[str, Setting] = {
    "run.warmup": "0 s",
    "run.duration": "60 ms",
    "readout.fragments_per_host": 6,
    "collectors.units_per_host": 3,
    "collectors.processing_time": "2 ms",
    "network.readouts_per_group": 4,
}


def racks(draw: random.Random) -> dict[str, Setting]:
    """Draw a small rack of collectors, with or without losses."""
    return RACK | {
        "readout.hosts": draw.randint(1, 12),
        "collectors.racks": draw.randint(1, 2),
        "collectors.hosts_per_rack": draw.randint(1, 3),
        "supervisor.rate": f"{draw.randint(100, 900)} Hz",
        "supervisor.arrivals": draw.choice(["periodic", "poisson"]),
        "tor.buffer": draw.choice(["20 kB", "60 kB", "1 MB"]),
    }


CORES_ONLY = "network.readouts_per_group"
# Transports and networks that the laws of one run hold for.
SYSTEMS: tuple[dict[str, Setting], ...] = (
    {},
    {"transport.profile": "linux-6"},
    {
        "transport.profile": "linux-6",
        "transport.congestion_control": "dctcp",
        "tor.ecn.mode": "threshold",
        "tor.ecn.threshold": 10,
    },
    {"network.topology": "leaf-spine", "transport.profile": "linux-6"},
)


def systems(draw: random.Random) -> dict[str, Setting]:
    """Draw a small rack of collectors with a transport, a technique or a network of its own."""
    sets = racks(draw) | draw.choice(SYSTEMS)
    # Only cores have groups of readouts.
    return {key: sets[key] for key in sets if key != CORES_ONLY or "network.topology" not in sets}


def play(preset: str, sets: dict[str, Setting], seed: int) -> fanin.Result:
    """Simulate a preset with these settings to the end."""
    result = fanin.Scenario.load(preset, sets).simulate(seed=seed, progress=False)
    assert result.end == "complete", result.diagnosis
    return result


def table(result: fanin.Result, name: str) -> polars.DataFrame:
    """Return a table of the result."""
    return polars.DataFrame(getattr(result, name))


def same(one: fanin.Result, other: fanin.Result) -> None:
    """Assert that two runs are the same to the picosecond and the segment."""
    assert table(one, "events").equals(table(other, "events"))
    used = polars.col("segments") > 0
    columns = ["source", "destination", "acked_bytes", "segments", "retransmits", "timeouts"]
    flows = [table(result, "flows").filter(used).select(columns) for result in (one, other)]
    assert flows[0].equals(flows[1])


def star(senders: int, kilobytes: int, more: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return a star in which each sender answers with `kilobytes`."""
    size = f"{senders * kilobytes} kB"
    own: dict[str, Setting] = {"workload.senders": senders, "workload.request_size": size}
    return {**STAR, "run.duration": "50 ms", **own, **more}


def scaled(senders: int, kilobytes: int, buffering: str, factor: int) -> dict[str, Setting]:
    """Return a star whose rates are `factor` times as high, and whose times are as much shorter."""

    def micros(time: int) -> str:
        assert 1_000_000 * time % factor == 0
        return f"{1_000_000 * time // factor} ps"

    times = {
        "run.duration": 50_000,
        "link.delay": 20,
        "readout.link.delay": 10,
        "transport.rto_min": 900_000,
        "transport.rto_max": 1_000_000,
        "transport.timer_granularity": 8,
        "workload.service_delay_max": 400,
        "run.stall_limit": 60_000_000,
    }
    return star(
        senders,
        kilobytes,
        {key: micros(time) for key, time in times.items()}
        | {
            "link.rate": f"{factor} Gb/s",
            "readout.link.rate": f"{factor} Gb/s",
            "tor.buffering": buffering,
            "tor.buffer": "10 MB",
        },
    )


@over_random_scenarios
def test_faster_links_and_shorter_times_scale_the_run(number: int) -> None:
    """Without CUBIC, whose growth is per second, and without ties, whose order depends on the time.

    Nothing is lost either: retransmission timers count round trips in ticks that Linux fixes.
    """
    draw = random.Random(number)
    senders, kilobytes, seed = draw.randint(1, 24), draw.randint(1, 60), draw.randrange(1000)
    buffering, factor = draw.choice(["dedicated", "shared"]), draw.choice([2, 4, 8])
    slow = play("incast", scaled(senders, kilobytes, buffering, 1), seed)
    fast = play("incast", scaled(senders, kilobytes, buffering, factor), seed)
    times = [name for name in table(slow, "events").columns if name.endswith("_ps")]
    longer = table(fast, "events").with_columns(polars.col(name) * factor for name in times)
    # Random delays are drawn in whole picoseconds.
    rounding = 1_000
    for name in times:
        assert ((longer[name] - table(slow, "events")[name]).abs() <= rounding).all(), name
    counts = ["flow", "acked_bytes", "segments", "retransmits", "timeouts"]
    assert table(fast, "flows").select(counts).equals(table(slow, "flows").select(counts))


@over_random_scenarios
def test_a_buffer_beyond_need_changes_nothing(number: int) -> None:
    """Where no frame waits for room, its size is not read."""
    draw = random.Random(number)
    buffering = {"tor.buffering": draw.choice(["dedicated", "shared"])}
    sets, seed = star(draw.randint(1, 24), draw.randint(1, 60), buffering), draw.randrange(1000)
    large = play("incast", sets | {"tor.buffer": "1 GB"}, seed)
    needed = large.summary["network"]["queue_bytes_max"]
    # A frame is admitted where all of it has room; the memory is at least one frame.
    same(
        large, play("incast", sets | {"tor.buffer": f"{max(needed, 1518) + draw.randrange(100_000)} B"}, seed)
    )


@over_random_scenarios
def test_idle_settings_change_nothing(number: int) -> None:
    """Such are thresholds above all that is queued, and loggers of which none gets an event."""
    draw = random.Random(number)
    sets, seed = racks(draw), draw.randrange(1000)
    idle: list[dict[str, Setting]] = [
        {"tor.ecn.mode": "threshold", "tor.ecn.threshold": 1_000_000, "transport.ecn": True},
        {"tor.ecn.mode": "red-drop", "tor.ecn.min": 500_000, "tor.ecn.max": 1_000_000},
        {"tor.pause.mode": "pause", "tor.pause.xoff": "900 MB", "tor.pause.xon": "1 B", "tor.buffer": "1 GB"},
        {"shaping.method": "credits", "shaping.credits": 1_000_000},
        {"record.queues": ["tor->collector"]},
        {"logger.hosts": 3},
    ]
    technique = draw.choice(idle)
    if "tor.pause.mode" in technique:
        # The threshold of PAUSE lies within the buffer, so that both runs have the larger one.
        sets |= {"tor.buffer": "1 GB"}
    if "logger.hosts" in technique:
        sets |= {"logger.hosts": 1}
    same(play("thesis-a-1000hz", sets, seed), play("thesis-a-1000hz", sets | technique, seed))


@over_random_scenarios
def test_idle_collectors_change_no_collection_time(number: int) -> None:
    """A low rate and ties for the lowest number leave all events to the first collector.

    The units of the others announce themselves. That moves the first event, and all others with it.
    """
    draw = random.Random(number)
    few: dict[str, Setting] = {
        "collectors.racks": 1,
        "collectors.hosts_per_rack": 1,
        "supervisor.policy": "node-load-balancing",
        "supervisor.tie_break": "lowest",
        "supervisor.arrivals": "periodic",
        "supervisor.rate": "1 Hz",
        "run.duration": "3 s",
        # Retransmission timers tick at times of their own, to which the shift is none.
        "tor.buffer": "1 MB",
    }
    sets, seed = racks(draw) | few, draw.randrange(1000)
    idle: dict[str, Setting] = draw.choice(
        [{"collectors.racks": 2}, {"collectors.hosts_per_rack": 4}, {"collectors.racks": 3}]
    )
    one, other = (table(play("thesis-a-1000hz", sets | more, seed), "events") for more in ({}, idle))
    assert set(other["collector"]) == {0}
    columns = ["id", "size_bytes", "ideal_ps", "collection_time_ps"]
    assert one.select(columns).equals(other.select(columns))


@over_random_scenarios
def test_the_summary_counts_what_the_tables_hold(number: int) -> None:
    """Events, segments, retransmissions and bytes are conserved."""
    draw = random.Random(number)
    sets, seed = systems(draw), draw.randrange(1000)
    result = play("thesis-a-1000hz", sets, seed)
    summary, events, flows = result.summary, table(result, "events"), table(result, "flows")
    assert summary["events"]["collected"] == len(events) == summary["events"]["assigned"]
    assert summary["events"]["accepted"] + summary["events"]["rejected"] == len(events)
    for key in ("segments", "retransmits", "timeouts", "fast_retransmits", "spurious_retransmits"):
        assert summary["tcp"][key] == flows[key].sum(), key
    # Each segment that a queue drops is sent again; needless copies come on top.
    assert flows["retransmits"].sum() >= summary["network"]["drops"] - flows["timeouts"].sum()
    answers = flows.filter(
        polars.col("source").str.starts_with("readout:")
        & polars.col("destination").str.starts_with("collector:")
    )
    headers = len(events) * int(str(sets["readout.hosts"])) * ANSWER_HEADER_BYTES
    # At the end the acknowledgement of a flow's last two segments may be delayed still.
    delayed = 2 * 1460 * len(answers)
    sent = int(events["size_bytes"].sum()) + headers
    assert sent - delayed <= answers["acked_bytes"].sum() <= sent


@over_random_scenarios
def test_the_quantiles_are_those_of_the_table(number: int) -> None:
    """A quantile is the smallest time that at least its share of the events does not exceed."""
    draw = random.Random(number)
    sets, seed = systems(draw), draw.randrange(1000)
    result = play("thesis-a-1000hz", sets, seed)
    times = sorted(table(result, "events")["collection_time_ps"].to_list())
    shown: dict[str, Any] = result.summary["collection_time_ms"]
    for name, share in {"p01": 0.01, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}.items():
        rank = max(1, math.ceil(round(share * len(times), 6)))
        assert shown[name] == pytest.approx(times[rank - 1] / 1e9, rel=1e-12), name
    assert shown["mean"] == pytest.approx(sum(times) / len(times) / 1e9, rel=1e-9)
    assert (shown["min"], shown["max"]) == (times[0] / 1e9, times[-1] / 1e9)


@over_random_scenarios
def test_no_event_beats_its_lower_bound(number: int) -> None:
    """Neither an event its own ideal, nor all together the bound of the summary."""
    draw = random.Random(number)
    sets, seed = systems(draw), draw.randrange(1000)
    result = play("thesis-a-1000hz", sets, seed)
    events = table(result, "events")
    assert (events["collection_time_ps"] >= events["ideal_ps"]).all()
    for key in ("mean", "p99"):
        assert result.summary["collection_time_ms"][key] >= result.summary["bound"]["time_ms"][key] * (
            1 - 1e-9
        )
    # The clairvoyant schedule has the least mean, at the cost of the latest.
    clairvoyant = result.summary["bound"]["clairvoyant"]["time_ms"]["mean"]
    assert clairvoyant >= result.summary["bound"]["time_ms"]["mean"] * (1 - 1e-9)


@over_random_scenarios
def test_little_s_law_holds_for_events(number: int) -> None:
    """The mean time of the summary is the area below the events in progress, by their number."""
    draw = random.Random(number)
    sets, seed = racks(draw), draw.randrange(1000)
    result = play("thesis-a-1000hz", sets, seed)
    events = table(result, "events")
    begins, ends = events["first_request_ps"], events["last_byte_ps"]
    span = int(ends.max()) - int(begins.min())  # type: ignore[arg-type]
    mean_ms = result.summary["collection_time_ms"]["mean"]
    expected = len(events) / (span / 1e9) * mean_ms
    # Between two instants at which an event begins or ends, their number is constant.
    steps = sorted([(time, 1) for time in begins] + [(time, -1) for time in ends])
    area, number = 0, 0
    for (time, step), (after, _) in zip(steps, [*steps[1:], steps[-1]], strict=True):
        number += step
        assert number >= 0
        area += number * (after - time)
    assert area / span == pytest.approx(expected, rel=1e-9)


@over_random_scenarios
def test_a_port_that_holds_a_frame_sends_one(number: int) -> None:
    """Little's law at the server: the share of samples with a frame is the load of the link."""
    draw = random.Random(number)
    watched: dict[str, Setting] = {
        "record.queues": ["tor->collector"],
        "record.queue_interval": "1003 ns",
        "tor.buffer": "10 MB",
    }
    result = play("incast", star(draw.randint(1, 24), draw.randint(1, 60), watched), draw.randrange(1000))
    busy = (table(result, "queues")["queue_frames"] > 0).mean()
    assert busy == pytest.approx(result.summary["load"]["last_hop"], abs=0.03)
