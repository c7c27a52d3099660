"""The interface of a running switch against its own description: right and wrong requests by the hundred."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The right values of a ring or rule depend on what the switch has, which no schema says.
NOT_CHECKED = "positive_data_acceptance"
# It takes half a minute; a machine that is busy with other things gets more.
RUN_SECONDS_MAX = 150


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start a switch over ports in memory, and return where it listens."""
    path = os.environ.get("FANIN_BIN")
    assert path, "set FANIN_BIN to the fanin binary"
    busy = Path(path).parent / "examples" / "busy"
    assert busy.exists(), f"{busy} is missing: cargo build -p fanin-switch --example busy"
    process = subprocess.Popen(
        [busy, "serve", "127.0.0.1:0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_every_answer_is_as_described(address: str, tmp_path: Path) -> None:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/v1/openapi.json"),
        *("--checks", "all", "--exclude-checks", NOT_CHECKED, "--exclude-operation-id", "capture"),
        *("--max-examples", "8", "--seed", "1", "--no-color", "--request-timeout", "10"),
        *("--max-time", "30", "--suppress-health-check", "all", "--warnings", "off"),
    ]
    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    # Whatever was asked, the switch works on.
    with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
        assert json.load(answer)["status"] == "ok"


def test_the_committed_description_is_the_one_that_is_served(address: str) -> None:
    with urllib.request.urlopen(f"{address}/v1/openapi.json", timeout=10) as answer:
        served = json.load(answer)
    assert served == json.loads((ROOT / "docs" / "switch-api.json").read_text())
