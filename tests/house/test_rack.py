"""The script of the main job names what a machine cannot measure, and fails only where a run does."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In place of the program: simulations and pages succeed, and each run ends with a status. Namespaces are
# there unless LACKING is set. A run that is tried again ends with AGAIN.
STUB = """#!/bin/sh
[ "$1" = run ] || exit 0
if [ "$2" = --check ]; then
    [ "$3 $4" = "--place namespaces" ] || exit 2
    [ -n "$LACKING" ] || exit 0
    printf '%s\n' "error: $LACKING; see more" >&2
    exit "${CHECK:-3}"
fi
printf '%s\n' "$*" >>"$CALLS"
case "$*" in *run.scale=*) STATUS="${AGAIN:-$STATUS}" ;; esac
while [ "$1" != --out ]; do shift; done
mkdir -p "$2"
[ -z "$WARNED" ] || printf '%s\n' "WARN $WARNED" >"$2/launcher.log"
[ -z "$SUMMARY" ] || printf '%s' "$SUMMARY" >"$2/summary.json"
printf '%s\n' "error: $ERROR" >&2
exit "$STATUS"
"""
REASON = "the switch lost frames"
# Errors of a run whose processes or switches hardly ran.
IDLE, HUNG = (
    "no event was assigned within",
    "fragments are missing, and the readouts did not work all the time",
)
SILENT, UNREADY = (
    "the switch tor:0: the switch at /run/s has not answered for",
    "the switch tor:0 was not ready within",
)
CRASHED, ENDED = "fragments are missing, and these readouts ended", "a process ended"
ENDED_LATE = "a process that was killed ended late"
TRIED = "at scale 0.25: {0}; at scale 0.125: {0}; at scale 0.0625: {0}"
CASES = ("shallow", "credits", "daqring")


def rack(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    stub = folder / "fanin"
    stub.write_text(STUB)
    stub.chmod(0o755)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "CALLS": str(folder / "calls")} | variables
    command = [ROOT / "scripts" / "rack.sh", stub, folder / "out"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def verdicts(run: subprocess.CompletedProcess[str]) -> list[str]:
    assert run.returncode == 0, run.stdout + run.stderr
    return [line.strip() for line in run.stdout.split("Measured on this machine:\n")[1].splitlines()[:-1]]


@pytest.mark.parametrize(
    ("status", "error", "summary", "said"),
    [
        (0, "", {"scale": 0.25}, "valid, at scale 0.25"),
        (3, "the reason", None, "NOT MEASURED: the reason"),
        (4, "the reason", None, "NOT MEASURED " + TRIED.format("the reason")),
        (4, "", {"scale": 0.25, "reason": REASON}, "NOT VALID " + TRIED.format(REASON)),
        (1, f"{IDLE} 60 s\nLast lines of the logs:\nx", None, "NOT MEASURED " + TRIED.format(f"{IDLE} 60 s")),
        (1, f"7 {HUNG}: readout-3", None, "NOT MEASURED " + TRIED.format(f"7 {HUNG}: readout-3")),
        (1, f"{SILENT} 15 s", None, "NOT MEASURED " + TRIED.format(f"{SILENT} 15 s")),
        (2, f"{UNREADY} 20 s: no", None, "NOT MEASURED " + TRIED.format(f"{UNREADY} 20 s: no")),
    ],
)
def test_each_measurement_has_a_verdict(
    tmp_path: Path, status: int, error: str, summary: dict[str, object] | None, said: str
) -> None:
    machine = json.dumps({"machine": summary}) if summary else ""
    run = rack(tmp_path, STATUS=str(status), ERROR=error, SUMMARY=machine)
    assert verdicts(run) == [f"{case}: {said}" for case in CASES]
    # No run may choose another place by itself.
    calls = (tmp_path / "calls").read_text().splitlines()
    assert all("--place namespaces" in call for call in calls), calls


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (1, "7 events were lost, the reason"),
        (2, f"the reason is not that {IDLE} 60 s"),
        (1, f"7 {CRASHED}: the reason"),
        (1, f"{IDLE} 60 s, and the reason ended 3 times\nLast lines of the logs:"),
        (1, "the switch tor:0 ended during the run, the reason"),
    ],
)
def test_a_loss_or_an_end_is_a_failure(tmp_path: Path, status: int, error: str) -> None:
    run = rack(tmp_path, STATUS=str(status), ERROR=error)
    assert run.returncode == status, run.stdout + run.stderr
    assert "the reason" in run.stderr


def test_a_spoilt_measurement_is_tried_at_half_the_scale(tmp_path: Path) -> None:
    summary = json.dumps({"machine": {"scale": 0.125}})
    run = rack(tmp_path, STATUS="4", AGAIN="0", ERROR=REASON, SUMMARY=summary)
    said = verdicts(run)
    # The stub has one summary for all; a valid run has no reason in it.
    assert said == [f"{case}: valid, at scale 0.125 (before: at scale 0.25: {REASON})" for case in CASES]
    assert rack(tmp_path, STATUS="4", AGAIN="1", ERROR="7 events were lost").returncode == 1


def test_without_namespaces_nothing_is_called_valid(tmp_path: Path) -> None:
    lacking = "network namespaces need root (CAP_NET_ADMIN)"
    run = rack(tmp_path, STATUS="0", LACKING=lacking, SUMMARY=json.dumps({}))
    said = verdicts(run)
    assert said[:3] == [f"{case}: NOT MEASURED: {lacking}" for case in CASES]
    assert said[3:] == [f"loopback: ran on 127.0.0.1: no switch, no figures of a network; {lacking}"]
    assert "valid" not in run.stdout
    assert "33 namespaces" not in run.stdout
    assert f"{lacking}: the same processes once, on 127.0.0.1" in run.stdout
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1, calls
    assert "--place loopback" in calls[0]
    idle = rack(tmp_path, STATUS="1", LACKING=lacking, ERROR=f"{IDLE} 60 s\nLast lines of the logs:")
    assert verdicts(idle)[3] == f"loopback: NOT MEASURED: {IDLE} 60 s"


def test_a_program_that_fails_is_no_lack_of_namespaces(tmp_path: Path) -> None:
    run = rack(tmp_path, STATUS="0", LACKING="unexpected argument", CHECK="2")
    assert run.returncode == 2
    assert "unexpected argument" in run.stderr
    assert "NOT MEASURED" not in run.stdout


@pytest.mark.parametrize("status", [0, 1, 4])
def test_a_process_that_crashed_is_a_failure_of_each_run(tmp_path: Path, status: int) -> None:
    error = f"7 {HUNG}: readout-3"
    warned = f'{ENDED} process="collector-1" status=signal: 11 (SIGSEGV)'
    run = rack(tmp_path, STATUS=str(status), ERROR=error, WARNED=warned)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "SIGSEGV" in run.stderr
    # A log of an earlier run does not count.
    assert rack(tmp_path, STATUS="3", ERROR=error).returncode == 0


@pytest.mark.parametrize("late", [ENDED_LATE, ENDED_LATE.replace("process", "supervisor")])
def test_a_process_that_was_killed_did_not_crash(tmp_path: Path, late: str) -> None:
    warned = f'{late} process="collector-1" status=signal: 9 (SIGKILL)'
    summary = json.dumps({"machine": {"scale": 0.25}})
    run = rack(tmp_path, STATUS="0", WARNED=warned, SUMMARY=summary)
    assert verdicts(run) == [f"{case}: valid, at scale 0.25" for case in CASES]


def test_the_program_has_these_errors() -> None:
    files = (
        "node/src/launch/error.rs",
        "node/src/launch/mod.rs",
        "cli/src/failure.rs",
        "testbed/src/live/switch_process.rs",
        "switch/src/control/client.rs",
    )
    sources = [f"crates/{file}" for file in files]
    text = "".join((ROOT / source).read_text() for source in sources)
    assert f'"{IDLE} {{}} s{{}}\\nLast lines of ' in text
    assert f'"{{missing}} {HUNG}: ' in text
    assert f'"{{missing}} {CRASHED}: ' in text
    assert '"the switch {name}: {source}"' in text
    assert '"the switch at {address} has not answered for {} s"' in text
    assert '"the switch {name} was not ready within {} s: ' in text
    for words in (ENDED, ENDED_LATE, ENDED_LATE.replace("process", "supervisor")):
        assert f'"{words}"' in text
