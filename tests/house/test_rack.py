"""The script of the main job names what a machine cannot measure, and fails only where a run does."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In place of the program: simulations and pages succeed, and each run ends with a status.
STUB = """#!/bin/sh
[ "$1" = run ] || exit 0
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
[ -z "$SUMMARY" ] || printf '%s' "$SUMMARY" >"$2/summary.json"
echo "error: the reason" >&2
exit "$STATUS"
"""
REASON = "the switch lost frames"


@pytest.mark.parametrize(
    ("status", "summary", "code", "said"),
    [
        (0, {"machine": {"scale": 0.1}}, 0, ": valid, at scale 0.1"),
        (3, None, 0, ": NOT MEASURED: error: the reason"),
        (4, None, 0, ": NOT MEASURED: error: the reason"),
        (4, {"machine": {"scale": 0.1, "reason": REASON}}, 0, f": NOT VALID at scale 0.1 either: {REASON}"),
        (1, None, 1, ""),
    ],
)
def test_each_measurement_has_a_verdict(
    tmp_path: Path, status: int, summary: dict[str, object] | None, code: int, said: str
) -> None:
    stub = tmp_path / "fanin"
    stub.write_text(STUB)
    stub.chmod(0o755)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "STATUS": str(status),
        "SUMMARY": json.dumps(summary) if summary else "",
    }
    command = [ROOT / "scripts" / "rack.sh", stub, tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == code, run.stdout + run.stderr
    if code == 0:
        verdicts = run.stdout.split("Measured on this machine:\n")[1].splitlines()[:-1]
        # Three with root; one without, on 127.0.0.1.
        assert len(verdicts) in {1, 3}, verdicts
        assert all(verdict.endswith(said) for verdict in verdicts), verdicts
    else:
        assert "the reason" in run.stderr
