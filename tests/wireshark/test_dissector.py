"""The Wireshark dissector reads our messages and M21TCP's option, by tshark."""

import os
import struct
import subprocess
from pathlib import Path

import pytest

from fanin.message import pack_hello

# Port 7000 is another protocol's by default.
FIRST = ("-o", "tcp.try_heuristic_first:TRUE")
GREETING, REFUSAL, REQUEST, ANSWER, STORED = 0xFFFFFF01, 0xFFFFFF03, 6, 7, 15


def message(kind: int, stream: int, payload: bytes) -> bytes:
    """Return a message as it is on the wire."""
    return struct.pack("<III", kind, stream, len(payload)) + payload


def tshark(root: Path, capture: Path, display_filter: str, *fields: str) -> list[list[str]]:
    """Return the fields of the frames that a filter passes."""
    script = root / "deploy" / "wireshark" / "fanin.lua"
    shown = [word for field in fields for word in ("-e", field)]
    command = [
        "tshark",
        "-X",
        f"lua_script:{script}",
        *FIRST,
        "-r",
        str(capture),
        "-Y",
        display_filter,
        "-T",
        "fields",
    ]
    result = subprocess.run([*command, *shown], capture_output=True, text=True, check=True)
    assert "Lua" not in result.stderr, result.stderr
    return [line.split("\t") for line in result.stdout.splitlines()]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Return a capture of one direction of a connection, with an answer that goes on in the next segment."""
    event = struct.pack("<Q", 77)
    answer = message(ANSWER, 3, event + bytes(2992))
    segments = [
        message(GREETING, 0, pack_hello("collector 0", "readout 1", 0.5, (1, 3))),
        message(REQUEST, 3, event + bytes(4)) + message(REQUEST, 4, struct.pack("<Q", 78)),
        answer[:1400],
        answer[1400:2800],
        answer[2800:] + message(STORED, 0, event + bytes(2)),
        message(REFUSAL, 0, b"unknown peer"),
    ]
    dump = tmp_path / "dump.txt"
    dump.write_text("".join(f"000000 {segment.hex(' ')}\n\n" for segment in segments))
    path = tmp_path / "capture.pcap"
    subprocess.run(
        ["text2pcap", "-q", "-T", "40000,7000", str(dump), str(path)], check=True, capture_output=True
    )
    return path


def test_each_message_is_read(root: Path, capture: Path) -> None:
    kinds = tshark(root, capture, "fanin", "frame.number", "fanin.type", "fanin.l1_id", "fanin.continued")
    assert kinds == [
        ["1", "0xffffff01", "", ""],
        ["2", "0x00000006,0x00000006", "77,78", ""],
        ["3", "0x00000007", "77", ""],
        ["4", "", "", "1400"],
        ["5", "0x0000000f", "77", "212"],
        ["6", "0xffffff03", "", ""],
    ]
    assert tshark(root, capture, "fanin.reason", "fanin.reason") == [["unknown peer"]]
    fields = "fanin.name", "fanin.expects", "fanin.heartbeat", "fanin.highest"
    greeting = tshark(root, capture, "fanin.name", *fields)
    assert greeting == [["collector 0", "readout 1", "500", "3"]]


def test_the_window_of_m21tcp_is_read(root: Path, tmp_path: Path) -> None:
    binary = os.environ.get("FANIN_BIN")
    assert binary, "set FANIN_BIN to the fanin binary"
    path = tmp_path / "m21.pcapng"
    settings = ("run.duration=20 ms", "transport.congestion_control=m21tcp", "tor.m21=true")
    sets = [word for setting in settings for word in ("--set", setting)]
    command = [binary, "sim", "m21tcp-ffw", *sets, "--pcap", str(path), "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    rows = tshark(root, path, "m21tcp", "m21tcp.role", "m21tcp.window")
    options = {pair for roles, sizes in rows for pair in zip(roles.split(","), sizes.split(","), strict=True)}
    forward, echo = ({window for role, window in options if role == wanted} for wanted in ("1", "2"))
    # A sender offers any window, a switch writes a smaller one, and the receiver echoes that.
    written = forward - {str(2**32 - 1)}
    assert written
    assert written <= echo
    assert not tshark(root, path, "fanin", "frame.number")
