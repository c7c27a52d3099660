"""tshark judges the captures of `fanin run`: no fault, true checksums, and the result's answers."""

import json
import os
import re
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
)
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


@pytest.mark.parametrize("options", [(), ("--loopback",)], ids=["namespaces", "loopback"])
def test_captures_of_live_runs_have_no_fault_and_all_answers(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    capture, summary = run(tmp_path, *options)
    assert not complaints(capture, *([UNSUMMED] if options else []))
    # Each sender's bytes, without copies, from its port to the collector.
    bytes_of: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for frame in tshark(capture, "tcp.stream", "ip.src", "tcp.srcport", "tcp.seq", "tcp.len"):
        if int(frame["tcp.len"] or 0):
            key = f"{frame['tcp.stream']} {frame['ip.src']} {frame['tcp.srcport']}"
            first = int(frame["tcp.seq"])
            bytes_of[key].add((first, first + int(frame["tcp.len"])))
    received = sorted((covered(spans) for spans in bytes_of.values()), reverse=True)[:SENDERS]
    completed = summary["requests"]["completed"]
    assert completed > 10
    # The last request may be under way when the time is over.
    assert all(count // ANSWER in (completed, completed + 1) for count in received), (completed, received)


def covered(spans: set[tuple[int, int]]) -> int:
    """Return how many bytes spans of a stream cover."""
    total = end = 0
    for first, last in sorted(spans):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total
