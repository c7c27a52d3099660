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
[ -z "$WARNED" ] || printf '%s\n' "WARN $WARNED" >"$2/launcher.log"
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
CRASHED, ENDED = "fragments are missing, and these readouts ended", "a process ended"


def rack(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    stub = folder / "fanin"
    stub.write_text(STUB)
    stub.chmod(0o755)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | variables
    command = [ROOT / "scripts" / "rack.sh", stub, folder / "out"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


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
        (1, f"7 {CRASHED}: the reason", None, 1, ""),
        (1, f"{IDLE} 60 s, and the reason ended 3 times; last lines of the logs:", None, 1, ""),
    ],
)
def test_each_measurement_has_a_verdict(
    tmp_path: Path, status: int, error: str, summary: dict[str, object] | None, code: int, said: str
) -> None:
    run = rack(tmp_path, STATUS=str(status), ERROR=error, SUMMARY=json.dumps(summary) if summary else "")
    assert run.returncode == code, run.stdout + run.stderr
    if code == 0:
        verdicts = run.stdout.split("Measured on this machine:\n")[1].splitlines()[:-1]
        # Three with root; one without, on 127.0.0.1.
        assert len(verdicts) in {1, 3}, verdicts
        assert all(verdict.endswith(said) for verdict in verdicts), verdicts
    else:
        assert "the reason" in run.stderr


@pytest.mark.parametrize("status", [0, 1, 4])
def test_a_process_that_crashed_is_a_failure_of_each_run(tmp_path: Path, status: int) -> None:
    error = f"7 {HUNG}: readout-3"
    warned = f'{ENDED} process="collector-1" status=signal: 11 (SIGSEGV)'
    run = rack(tmp_path, STATUS=str(status), ERROR=error, WARNED=warned)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "SIGSEGV" in run.stderr
    # A log of an earlier run does not count.
    assert rack(tmp_path, STATUS="3", ERROR=error).returncode == 0


def test_the_program_has_these_errors() -> None:
    files = ("node/src/launch/error.rs", "node/src/launch/mod.rs", "cli/src/failure.rs")
    sources = [f"crates/{file}" for file in files]
    text = "".join((ROOT / source).read_text() for source in sources)
    assert f'"{IDLE} {{}} s{{}}; last lines of ' in text
    assert f'"{{missing}} {HUNG}: ' in text
    assert f'"{{missing}} {CRASHED}: ' in text
    assert f'"{ENDED}"' in text
