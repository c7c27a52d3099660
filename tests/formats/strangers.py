"""Shared by the tests of our formats: runs of the command, and captures as tshark reads them."""

import json
import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# tshark holds offloaded checksums for usual and does not check them by default.
CHECKSUMS = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE")
PCAP_HEADER, PCAP_RECORD = 24, struct.Struct("<IIII")

Settings = Mapping[str, object]


def fanin(*arguments: str | Path) -> str:
    """Run the command and return what it prints."""
    binary = os.environ.get("FANIN_BIN")
    assert binary, "set FANIN_BIN to the fanin binary"
    command = [binary, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout


def toml(value: object) -> str:
    """Return a value as `--set` takes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def simulate(out: Path, scenario: str, settings: Settings, *options: str | Path) -> dict[str, Any]:
    """Simulate into a folder and return the summary."""
    sets = [f"--set={key}={toml(value)}" for key, value in settings.items()]
    fanin("sim", scenario, *sets, "--quiet", "--out", out, *options)
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def tshark(capture: Path, *fields: str, only: str = "frame") -> list[dict[str, str]]:
    """Return fields of the frames that a display filter passes."""
    shown = [word for field in fields for word in ("-e", field)]
    command = ["tshark", *CHECKSUMS, "-r", str(capture), "-Y", only, "-T", "fields", *shown]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in result.stdout.splitlines()]


def with_payload(capture: Path, padded: Path) -> Path:
    """Write a capture again with the payload that it leaves out, which is all zeros."""
    subprocess.run(["editcap", "-F", "nsecpcap", str(capture), str(padded)], check=True, capture_output=True)
    data = padded.read_bytes()
    whole, at = bytearray(data[:PCAP_HEADER]), PCAP_HEADER
    while at < len(data):
        seconds, nanoseconds, kept, length = PCAP_RECORD.unpack_from(data, at)
        at += PCAP_RECORD.size
        whole += PCAP_RECORD.pack(seconds, nanoseconds, length, length)
        whole += data[at : at + kept].ljust(length, b"\0")
        at += kept
    padded.write_bytes(whole)
    return padded
