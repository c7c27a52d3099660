"""tshark judges our captures: no fault, true checksums, and figures that equal those of the result."""

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from strangers import Settings, simulate, tshark, with_payload

SENDERS = 8
# The classical incast, with losses and timeouts.
INCAST: Settings = {"workload.senders": SENDERS, "run.duration": "300 ms"}
COLLECTOR_LINK = "tor:0->collector:0"
COLLECTOR, SERVER_PORT = "10.0.0.2", "9000"
# Bytes of Ethernet on the wire and not in a capture: preamble, delimiter, check sequence, gap.
UNCAPTURED_BYTES = 24
PS_PER_S = 10**12

# Notes of tshark that speak of losses, which a switch on the way makes.
LOSSES = (
    r"Duplicate ACK \(#\d+\)",
    r"This frame is a \(suspected\) (fast |spurious )?retransmission",
    r"This frame is a \(suspected\) out-of-order segment",
    r"Previous segment\(s\) not captured \(common at capture start\)",
    r"D-SACK Sequence",
)
# An acknowledgement that only widens the window: long transfers have some.
HARMLESS = (*LOSSES, r"TCP window update")
RETRANSMISSION = " or ".join(
    f"tcp.analysis.{kind}"
    for kind in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
)


@dataclass
class Captured:
    """A run, and the capture of one link of it."""

    folder: Path
    capture: Path
    summary: dict[str, Any]

    def flows(self) -> list[dict[str, Any]]:
        """Return the rows of the connections that carry answers."""
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(self.folder / "flows.parquet").to_pylist()
        return [row for row in rows if row["destination"].startswith("collector")]


def capture(folder: Path, link: str, settings: Settings, scenario: str = "incast") -> Captured:
    """Simulate and capture a link."""
    folder.mkdir(exist_ok=True)
    path = folder / "link.pcapng"
    summary = simulate(folder / "out", scenario, {**settings, "record.capture": link}, "--pcap", path)
    return Captured(folder / "out", path, summary)


def complaints(path: Path) -> Counter[str]:
    """Return what tshark finds in a capture, harmless notes left out, and checksums that are not true."""
    found: Counter[str] = Counter()
    fields = ("_ws.expert.message", "ip.checksum.status", "tcp.checksum.status", "_ws.malformed")
    frames = tshark(path, *fields)
    assert frames, "the capture is empty"
    for frame in frames:
        for message in filter(None, frame["_ws.expert.message"].split(",")):
            if not any(re.fullmatch(pattern, message) for pattern in HARMLESS):
                found[message] += 1
        # 1 is good; a frame without IPv4 or TCP has no status.
        for name in fields[1:3]:
            if frame[name] != "1":
                found[f"{name} {frame[name]!r}"] += 1
    return found


@pytest.mark.parametrize(
    ("scenario", "settings"),
    [
        ("incast", INCAST),
        ("incast", {**INCAST, "network.framing": "point-to-point"}),
        ("incast", {**INCAST, "transport.profile": "linux-6", "transport.sack": False}),
        ("incast", {**INCAST, "background.connections": 3}),
        ("thesis-a-1000hz", {"run.duration": "5 ms", "run.warmup": "0 s"}),
        ("m21tcp-ffw", {"run.duration": "10 ms", "tor.m21": True, "transport.congestion_control": "m21tcp"}),
        ("multihost", {"run.duration": "200 us", "run.warmup": "0 s"}),
        ("leaf-spine", {"run.duration": "500 us", "run.warmup": "0 s"}),
    ],
)
def test_no_frame_is_malformed_and_every_checksum_is_true(
    scenario: str, settings: Settings, tmp_path: Path
) -> None:
    captured = capture(tmp_path, COLLECTOR_LINK, settings, scenario)
    assert not complaints(with_payload(captured.capture, tmp_path / "whole.pcap"))


def test_a_wrong_bit_is_found(tmp_path: Path) -> None:
    whole = with_payload(capture(tmp_path, COLLECTOR_LINK, INCAST).capture, tmp_path / "whole.pcap")
    data = bytearray(whole.read_bytes())
    # In the sequence number of the first segment.
    data[24 + 16 + 14 + 20 + 7] ^= 1
    whole.write_bytes(data)
    assert complaints(whole)["tcp.checksum.status '0'"] == 1


@pytest.fixture(scope="module", params=["ns3-newreno", "linux-6"])
def senders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """Return a run with the captures of all senders' links in one file."""
    # With this seed linux-6 has a timeout, and no tail loss probe of a segment alone: tshark takes that for
    # a timeout.
    settings = {**INCAST, "transport.profile": request.param, "run.seed": 1}
    folder = tmp_path_factory.mktemp("senders")
    # The same run once for each link.
    runs = [capture(folder / str(sender), f"readout:{sender}->tor:0", settings) for sender in range(SENDERS)]
    merged = folder / "senders.pcapng"
    subprocess.run(["mergecap", "-w", merged, *(run.capture for run in runs)], check=True)
    return Captured(runs[0].folder, merged, runs[0].summary)


def address(host: str) -> str:
    """Return the address of a sender: the switch is the first node, the collector the second."""
    return f"10.0.0.{3 + int(host.partition(':')[2])}"


def test_retransmissions_segments_and_timeouts_are_those_of_the_result(senders: Captured, root: Path) -> None:
    # The filter that users are given.
    guide = (root / "docs" / "howto" / "wireshark.md").read_text()
    (timeouts,) = re.findall(r"^\| `(tcp\.analysis\.rto [^`]+)`", guide, re.MULTILINE)
    # A host's own link changes no order. What tshark calls out of order was sent again within a round trip:
    # it speaks of a retransmission only after duplicate acknowledgements or 3 ms.
    filters = {"segments": "tcp.len > 0", "retransmits": RETRANSMISSION, "timeouts": timeouts}
    for counter, only in filters.items():
        found = Counter(frame["ip.src"] for frame in tshark(senders.capture, "ip.src", only=only))
        expected = {address(row["source"]): row[counter] for row in senders.flows()}
        assert {host: found[host] for host in expected} == expected, counter
        assert 0 < found.total() == senders.summary["tcp"][counter], counter


def test_no_sequence_is_disputed_where_nothing_is_lost(senders: Captured) -> None:
    # Behind a host's own link no frame is missing, and none is acknowledged that was not seen.
    wrong = "tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment or tcp.analysis.keep_alive"
    assert not tshark(senders.capture, "frame.number", only=f"{wrong} or tcp.analysis.zero_window")


def test_frames_and_their_bytes_are_those_of_the_result(senders: Captured) -> None:
    frames = tshark(senders.capture, "frame.len")
    network = senders.summary["network"]
    # The last acknowledgements are still under way when the last request is complete.
    missing = network["packets"] - len(frames)
    assert 0 <= missing < SENDERS
    on_wire = sum(int(frame["frame.len"]) + UNCAPTURED_BYTES for frame in frames)
    acknowledgements = {
        int(frame["frame.len"]) + UNCAPTURED_BYTES
        for frame in tshark(senders.capture, "frame.len", only="tcp.len == 0 and not tcp.options.sack_le")
    }
    assert network["bytes"] - on_wire in {missing * size for size in acknowledgements}


@pytest.mark.parametrize("profile", ["ns3-newreno", "linux-6"])
def test_goodput_load_and_losses_are_those_of_the_result(profile: str, tmp_path: Path) -> None:
    captured = capture(tmp_path, COLLECTOR_LINK, {**INCAST, "transport.profile": profile})
    summary, span = captured.summary, captured.summary["measured_ps"]
    assert span["from"] == 0
    seconds = span["until"] / PS_PER_S
    frames = tshark(
        captured.capture, "frame.time_epoch", "frame.len", "ip.src", "tcp.stream", "tcp.len", "tcp.ack"
    )
    acknowledged: Counter[str] = Counter()
    wire_bytes = answers = 0
    for frame in frames:
        if frame["ip.src"] != COLLECTOR:
            answers += int(frame["tcp.len"]) > 0
            if float(frame["frame.time_epoch"]) < seconds:
                wire_bytes += int(frame["frame.len"]) + UNCAPTURED_BYTES
        elif float(frame["frame.time_epoch"]) < seconds:
            # The number before the first byte is 0.
            acknowledged[frame["tcp.stream"]] = int(frame["tcp.ack"]) - 1
    # A request counts when each of its answers is complete.
    share = 256_000
    rounds = min(acknowledged.values()) // share
    assert len(acknowledged) == SENDERS
    assert rounds > 0
    assert rounds * share * SENDERS * 8 / seconds == pytest.approx(summary["goodput_bps"]["total"], rel=1e-12)
    assert wire_bytes * 8 / seconds / 1e9 == pytest.approx(summary["load"]["last_hop"], rel=1e-12)
    # All losses are before this link.
    sent = sum(row["segments"] for row in captured.flows())
    assert sent - answers == summary["network"]["drops"] > 0
    # No byte is acknowledged that did not come over this link.
    assert not tshark(captured.capture, "frame.number", only="tcp.analysis.ack_lost_segment")


@pytest.mark.parametrize("profile", ["ns3-newreno", "linux-6"])
def test_smoothed_round_trips_are_those_of_the_result(profile: str, tmp_path: Path) -> None:
    # Each answer is one segment: a host has no queue of its own, the switch has one of up to eight.
    settings = {**INCAST, "workload.request_size": "1 kB", "run.duration": "60 ms"}
    captured = capture(tmp_path, "readout:0->tor:0", {**settings, "transport.profile": profile})
    acks = ("tcp.analysis.ack_rtt", "tcp.analysis.acks_frame")
    frames = tshark(captured.capture, "frame.number", "frame.len", "ip.src", *acks)
    lengths = {frame["frame.number"]: int(frame["frame.len"]) for frame in frames}
    rate_gbps, delay_ns, tick_ns = 1, 25_000, 1000
    samples = []
    for frame in frames:
        if frame["ip.src"] == COLLECTOR and frame["tcp.analysis.ack_rtt"]:
            # The sender's clock starts when the segment leaves, the capture's when it has crossed the link.
            way = (lengths[frame["tcp.analysis.acks_frame"]] + UNCAPTURED_BYTES) * 8 // rate_gbps + delay_ns
            samples.append((round(float(frame["tcp.analysis.ack_rtt"]) * 1e9) + way) // tick_ns)
    assert len(samples) > 100
    assert len(set(samples)) > 5, "the round trips vary"
    # RFC 6298 with alpha = 1/8, in the kernel's integers: eight times the value, in microseconds.
    smoothed = samples[0] * 8
    for sample in samples[1:]:
        smoothed += sample - smoothed // 8
    (row,) = [row for row in captured.flows() if row["source"] == "readout:0"]
    assert smoothed * tick_ns * 1000 // 8 == row["rtt_smoothed_ps"]


def test_marks_of_the_switch_are_those_of_the_result(tmp_path: Path) -> None:
    settings = {
        **INCAST,
        "run.duration": "50 ms",
        "transport.profile": "linux-6",
        "transport.congestion_control": "dctcp",
        "tor.ecn.mode": "threshold",
        "tor.buffer": "1 MB",
    }
    captured = capture(tmp_path, COLLECTOR_LINK, settings)
    marked = len(tshark(captured.capture, "frame.number", only="ip.dsfield.ecn == 3"))
    assert marked == captured.summary["network"]["ecn_marks"] > 0
    # The receiver reports them; senders receive no marks.
    assert tshark(captured.capture, "frame.number", only=f"ip.src == {COLLECTOR} and tcp.flags.ece == 1")
    assert not tshark(captured.capture, "frame.number", only=f"ip.src != {COLLECTOR} and tcp.flags.ece == 1")


def test_the_link_has_its_name_and_rate(tmp_path: Path) -> None:
    path = capture(tmp_path, COLLECTOR_LINK, INCAST).capture
    described = subprocess.run(["capinfos", str(path)], capture_output=True, text=True, check=True).stdout
    for line in ("Name = tor:0->collector:0", "Speed = 1000000000", "Time precision = nanoseconds (9)"):
        assert line in described
    assert re.search(r"^Strict time order: +True$", described, re.MULTILINE)
