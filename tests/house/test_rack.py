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
printf '%s\n' "error: $ERROR" >&2
exit "$STATUS"
"""
REASON = "the switch lost frames"
# Errors of a run whose processes hardly ran.
IDLE, HUNG = (
    "no event was assigned within",
    "fragments are missing, and the readouts did not work all the time",
)


@pytest.mark.parametrize(
    ("status", "error", "summary", "code", "said"),
    [
        (0, "the reason", {"machine": {"scale": 0.1}}, 0, ": valid, at scale 0.1"),
        (3, "the reason", None, 0, ": NOT MEASURED: error: the reason"),
        (4, "the reason", None, 0, ": NOT MEASURED: error: the reason"),
        (
            4,
            "",
            {"machine": {"scale": 0.1, "reason": REASON}},
            0,
            f": NOT VALID at scale 0.1 either: {REASON}",
        ),
        (
            1,
            f"{IDLE} 60 s; last lines of the logs:\nsupervisor",
            None,
            0,
            f": NOT MEASURED: error: {IDLE} 60 s",
        ),
        (1, f"7 {HUNG}: readout-3", None, 0, f": NOT MEASURED: error: 7 {HUNG}: readout-3"),
        (1, "7 events were lost, the reason", None, 1, ""),
        (2, f"the reason is not that {IDLE} 60 s", None, 2, ""),
    ],
)
def test_each_measurement_has_a_verdict(
    tmp_path: Path, status: int, error: str, summary: dict[str, object] | None, code: int, said: str
) -> None:
    stub = tmp_path / "fanin"
    stub.write_text(STUB)
    stub.chmod(0o755)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "STATUS": str(status),
        "ERROR": error,
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


def test_the_program_has_these_errors() -> None:
    sources = ("crates/node/src/launch/error.rs", "crates/cli/src/failure.rs")
    text = "".join((ROOT / source).read_text() for source in sources)
    assert f'"{IDLE} {{}} s; last lines of ' in text
    assert f'"{{missing}} {HUNG}: ' in text
