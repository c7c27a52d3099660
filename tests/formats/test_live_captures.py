"""tshark judges the captures of `fanin run`: no fault, true checksums, and the result's answers."""

import json
import os
import re
import struct
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from strangers import tshark

SENDERS, ANSWER = 4, 10_000
SIZES = {
    "workload.senders": str(SENDERS),
    "workload.request_size": f"{ANSWER} B",
    "run.duration": "2 s",
    "run.warmup": "0 s",
}
# Exit codes of the command: a privilege is missing, the machine is too slow.
UNPRIVILEGED, TOO_SLOW = 3, 4
# Notes of tshark on losses in the switch, on messages in many segments, and on a connection's begin and end.
HARMLESS = (
    r"Duplicate ACK \(#\d+\)",
    r"This frame is a \(suspected\) (fast |spurious )?retransmission",
    r"This frame is a \(suspected\) out-of-order segment",
    r"Previous segment\(s\) not captured \(common at capture start\)",
    r"D-SACK Sequence",
    r"TCP window update",
    r"Unreassembled fragment \(change preferences to enable reassembly\)",
    r"Connection (establish|finish|reset) .*|Connection (finish|reset) \((FIN|RST)\)",
    r"This frame (initiates|undergoes) the connection closing",
    r"ACKed segment that wasn't captured \(common at capture start\)",
    r"TCP keep-alive segment|Keep-alive ACK",
    # A receiver that the machine keeps from reading.
    r"TCP window specified by the receiver is now completely full",
    r"TCP Zero Window segment|(ACK to a )?TCP Zero Window Probe",
)
# In pcapng: the block of statistics, its option that counts frames not captured, and the end of options.
STATISTICS, DROPPED, END = 5, 5, 0
# Over the loopback device the kernel sums no TCP segment.
UNSUMMED = r"Bad checksum \[should be 0x[0-9a-f]+\]"


def run(folder: Path, *options: str) -> tuple[Path, dict[str, Any]]:
    """Run a small incast for real. Return its capture and its summary."""
    capture = folder / "live.pcapng"
    sets = [f"--set={key}={value}" for key, value in SIZES.items()]
    case = Path(__file__).resolve().parents[2] / "scenarios" / "validation" / "cubic-04.toml"
    command = [os.environ["FANIN_BIN"], "run", str(case), *sets, "--quiet", f"--out={folder / 'out'}"]
    done = subprocess.run([*command, f"--pcap={capture}", *options], capture_output=True, text=True)
    if done.returncode == UNPRIVILEGED:
        pytest.skip(f"needs privileges: {done.stderr.strip()}")
    assert done.returncode in (0, TOO_SLOW), done.stderr
    summary: dict[str, Any] = json.loads((folder / "out" / "summary.json").read_text())
    return capture, summary


def complaints(path: Path, *harmless: str) -> Counter[str]:
    """Return what tshark finds in a capture, harmless notes left out."""
    found: Counter[str] = Counter()
    for frame in tshark(path, "_ws.expert.message", "_ws.malformed", "ip.checksum.status"):
        for message in filter(None, frame["_ws.expert.message"].split(",")):
            if not any(re.fullmatch(pattern, message) for pattern in (*HARMLESS, *harmless)):
                found[message] += 1
        if frame["_ws.malformed"]:
            found["malformed"] += 1
        if frame["ip.checksum.status"] != "1":
            found[f"ip.checksum.status {frame['ip.checksum.status']!r}"] += 1
    return found


def dropped(capture: Path) -> int:
    """Return how many frames a capture lacks, by its own statistics."""
    data, at, counts = capture.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        # The options come after the interface and the time, each filled up to four bytes.
        option = at + 20
        while kind == STATISTICS:
            code, size = struct.unpack_from("<HH", data, option)
            if code == END:
                break
            if code == DROPPED:
                counts.append(int.from_bytes(data[option + 4 : option + 4 + size], "little"))
            option += 4 + -(-size // 4) * 4
        at += length
    assert counts, f"{capture} does not say how many frames it lacks"
    return sum(counts)


@pytest.mark.parametrize("options", [(), ("--loopback",)], ids=["namespaces", "loopback"])
def test_captures_of_live_runs_have_no_fault_and_all_answers(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    capture, summary = run(tmp_path, *options)
    assert not complaints(capture, *([UNSUMMED] if options else []))
    completed = summary["requests"]["completed"]
    assert completed > 10
    if lacking := dropped(capture):
        pytest.skip(f"the answers are not measured: {lacking} frames came too fast for the capture")
    # Each sender's bytes, without copies, from its port to the collector.
    bytes_of: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for frame in tshark(capture, "tcp.stream", "ip.src", "tcp.srcport", "tcp.seq", "tcp.len"):
        if int(frame["tcp.len"] or 0):
            key = f"{frame['tcp.stream']} {frame['ip.src']} {frame['tcp.srcport']}"
            first = int(frame["tcp.seq"])
            bytes_of[key].add((first, first + int(frame["tcp.len"])))
    received = sorted((covered(spans) for spans in bytes_of.values()), reverse=True)[:SENDERS]
    assert len(received) == SENDERS
    # The last request may be under way when the time is over.
    assert all(count // ANSWER in (completed, completed + 1) for count in received), (completed, received)


def covered(spans: set[tuple[int, int]]) -> int:
    """Return how many bytes spans of a stream cover."""
    total = end = 0
    for first, last in sorted(spans):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


def test_a_capture_says_how_many_frames_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng"
    # Another block, and the statistics of two interfaces.
    other = struct.pack("<II4sI", 6, 16, b"\5\0\0\0", 16)
    blocks = [other]
    for interface, count in enumerate((3, 4)):
        comment = struct.pack("<HH3sx", 1, 3, b"abc")
        options = comment + struct.pack("<HHQHH", DROPPED, 8, count, END, 0)
        length = 24 + len(options)
        blocks.append(
            struct.pack("<IIIQ", STATISTICS, length, interface, 0) + options + struct.pack("<I", length)
        )
    path.write_bytes(b"".join(blocks))
    assert dropped(path) == 7
    path.write_bytes(other)
    with pytest.raises(AssertionError, match="does not say"):
        dropped(path)
