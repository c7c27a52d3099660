"""The nightly runs: each is done once on a commit, all are counted, and a night that was stopped goes on."""

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import nightly
import pytest
from nightly import Ended, Part, Run, State, Time, Verdict

# A call of nightly with one run, which changes a file until SIGINT ends it.
STOPPED = """
import signal, sys
from pathlib import Path
folder, is_ignored = Path(sys.argv[1]), sys.argv[2] == "True"
# This test may have inherited others.
signal.signal(signal.SIGINT, signal.SIG_IGN if is_ignored else signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
import nightly
script = '''
import os, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
(folder / "tree").write_text("a planted bug")
try:
    (folder / "pid.new").write_text(str(os.getpid()))
    (folder / "pid.new").rename(folder / "pid")
    time.sleep(600)
finally:
    time.sleep(0.5)
    (folder / "tree").write_text("as committed")
'''
command = [sys.executable, "-c", script, str(folder)]
run = nightly.Run("bug", command, nightly.by_code(""), 60)
nightly.OUT = folder
nightly.PARTS = (nightly.Part("part", 1.0, "a part", lambda _state, _night: iter([run])),)
sys.exit(nightly.main(["--hours", "1"]))
"""


def parts(
    folder: Path, codes: Sequence[int], seconds: float = 1.0, is_new_each_night: bool = False
) -> tuple[Part, ...]:
    """Make a part of runs that end with these codes, and leave a line in a file each time."""

    def runs(_state: State, _night: Time) -> Iterator[Run]:
        for number, code in enumerate(codes):
            script = f"open({str(folder / 'calls')!r}, 'a').write('{number} '); print('inputs'); exit({code})"
            judge = lambda ended: Verdict(ended.code == 0, "said", totals={"inputs": 5})  # noqa: E731
            yield Run(f"run-{number}", [sys.executable, "-c", script], judge, seconds)

    return (Part("part", 1.0, "a part", runs, is_new_each_night=is_new_each_night),)


def test_runs_are_counted_and_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    monkeypatch.setattr(nightly, "PARTS", parts(tmp_path, [0, 3, 0]))
    assert nightly.main(["--hours", "1"]) == 1
    assert capfd.readouterr().out.endswith("totals of all nights: 15 inputs\n2 passed, 1 failed\n")
    assert nightly.main(["--hours", "1"]) == 1
    assert (tmp_path / "calls").read_text() == "0 1 2 "
    # Another commit: runs are repeated, and totals stay.
    state = json.loads((tmp_path / "state.json").read_text())
    (tmp_path / "state.json").write_text(json.dumps(state | {"commit": "another"}))
    monkeypatch.setattr(nightly, "PARTS", parts(tmp_path, [0]))
    assert nightly.main(["--hours", "1"]) == 0
    assert capfd.readouterr().out.endswith("totals of all nights: 20 inputs\n1 passed, 0 failed\n")


def test_a_part_whose_time_is_over_goes_on_in_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    monkeypatch.setattr(nightly, "PARTS", parts(tmp_path, [0, 0]))
    assert nightly.main(["--hours", "0"]) == 0
    assert "0 s are left; next is run-0" in capfd.readouterr().out
    assert nightly.main(["--hours", "1"]) == 0
    assert capfd.readouterr().out.endswith("2 passed, 0 failed\n")


def test_a_run_begins_only_if_its_own_time_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    # The first run may take all of the hour, so that the second has less than its time.
    monkeypatch.setattr(nightly, "PARTS", parts(tmp_path, [0, 0], seconds=3600.0))
    assert nightly.main(["--hours", "1"]) == 0
    output = capfd.readouterr().out
    assert "s are left; next is run-1 of up to 3600 s" in output
    assert output.endswith("1 passed, 0 failed\n")
    assert (tmp_path / "calls").read_text() == "0 "
    assert nightly.main(["--hours", "1"]) == 0
    assert (tmp_path / "calls").read_text() == "0 1 "


def test_a_trial_does_some_runs_of_each_part_whatever_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    monkeypatch.setattr(nightly, "PARTS", parts(tmp_path, [0, 0, 0], seconds=3600.0))
    assert nightly.main(["--hours", "0.05", "--runs", "2"]) == 0
    assert capfd.readouterr().out.endswith("\n2 passed, 0 failed\n")
    # Runs that are done do not count.
    assert nightly.main(["--hours", "0.05", "--runs", "1"]) == 0
    assert (tmp_path / "calls").read_text() == "0 1 2 "


def test_a_run_that_was_cut_off_stays_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def runs(_state: State, _night: Time) -> Iterator[Run]:
        script = f"import time; time.sleep({600 if nightly.GRACE_SECONDS == 0 else 0})"
        yield Run("sleeper", [sys.executable, "-c", script], nightly.by_code(""), 0.2)

    monkeypatch.setattr(nightly, "OUT", tmp_path)
    monkeypatch.setattr(nightly, "PARTS", (Part("part", 1.0, "a part", runs),))
    with monkeypatch.context() as without_grace:
        without_grace.setattr(nightly, "GRACE_SECONDS", 0)
        # Not a success: a run that hangs each night must be seen.
        assert nightly.main(["--hours", "1"]) == 1
    output = capfd.readouterr().out
    assert "cut off part sleeper" in output
    assert output.endswith("\n0 passed, 0 failed, 1 cut off\n")
    assert nightly.main(["--hours", "1"]) == 0
    assert capfd.readouterr().out.endswith("\n1 passed, 0 failed\n")


def test_ten_hours_suffice_for_a_run_of_each_part() -> None:
    for part in nightly.PARTS:
        seconds = 36_000 * part.share
        runs = part.runs({"totals": {"inputs": nightly.INPUTS - 1}}, Time(seconds, 260101000000, "dev"))
        # Some parts draw runs without end.
        for run in itertools.islice(runs, 100):
            assert 0 < run.seconds <= seconds, part.name
            if part.name == "mutations":
                assert f"--limit {run.seconds}" in " ".join(run.command)


@pytest.mark.parametrize(
    ("number", "is_ignored"),
    [
        (signal.SIGINT, False),
        (signal.SIGTERM, False),
        # A shell without job control starts its background jobs so; the run must still take SIGINT.
        (signal.SIGTERM, True),
        (signal.SIGHUP, False),
    ],
)
def test_a_signal_ends_the_run_in_order_first(
    root: Path, tmp_path: Path, number: signal.Signals, is_ignored: bool
) -> None:
    environment = os.environ | {"PYTHONPATH": str(root / "scripts")}
    command = [sys.executable, "-c", STOPPED, str(tmp_path), str(is_ignored)]
    pid = tmp_path / "pid"
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        while not pid.exists():
            assert process.poll() is None
            time.sleep(0.02)
        # `timeout` sends its signal twice: to the process, and to the group.
        process.send_signal(number)
        process.send_signal(number)
        output, _ = process.communicate()
        assert (tmp_path / "tree").read_text() == "as committed"
    finally:
        process.kill()
        with suppress(OSError):
            os.killpg(int(pid.read_text()), signal.SIGKILL)
    assert process.returncode == 130
    assert "interrupted: the next call goes on here\n" in output
    assert output.endswith("0 passed, 0 failed\n")
    # The next call repeats the run.
    assert not (tmp_path / "state.json").exists()


def test_a_second_call_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    monkeypatch.setattr(nightly, "PARTS", parts(tmp_path, [0]))
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert nightly.main(["--hours", "1"]) == 2
        assert capfd.readouterr() == ("", f"nightly: another call is running with {tmp_path}\n")
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert nightly.main(["--hours", "1"]) == 0
    # The lock is free again.
    assert nightly.main(["--hours", "1"]) == 0


def test_each_night_has_seeds_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    drawn, fixed = parts(tmp_path, [0, 3], is_new_each_night=True)[0], parts(tmp_path, [0, 0, 0])[0]
    monkeypatch.setattr(nightly, "PARTS", (drawn, Part("fixed", fixed.share, "another part", fixed.runs)))

    def calls_on(date: str) -> str:
        monkeypatch.setattr(nightly, "today", lambda: date)
        (tmp_path / "calls").write_text("")
        assert nightly.main(["--hours", "1"]) == 1
        return (tmp_path / "calls").read_text()

    assert calls_on("261127") == "0 1 0 1 2 "
    assert calls_on("261127") == ""
    assert calls_on("261128") == "0 1 "
    assert capfd.readouterr().out.endswith("totals of all nights: 35 inputs\n5 passed, 2 failed\n")
    state = json.loads((tmp_path / "state.json").read_text())
    # The output of both failed runs is kept.
    seeds = {nightly.seed_of(date, state["commit"]) for date in ("261127", "261128")}
    assert {path.name for path in (tmp_path / "logs").glob("part-run-1*")} == {
        f"part-run-1-{seed}.log" for seed in seeds
    }


def test_worlds_of_two_nights_or_commits_are_different() -> None:
    worlds = next(part for part in nightly.PARTS if part.name == "worlds")
    seen: set[int] = set()
    nights = [("261127", "28dd44b0" * 5), ("261127", "fc0f0a17" * 5), ("261128", "28dd44b0" * 5)]
    for date, commit in nights:
        night = Time(60.0, nightly.seed_of(date, commit), "dev")
        begins = [int(run.command[-1]) for run in worlds.runs({}, night)]
        assert len(begins) == nightly.WORLDS / nightly.WORLDS_AT_ONCE
        assert max(begins) + nightly.WORLDS_AT_ONCE < 1 << 64
        seen.update(begins)
    assert len(seen) == len(nights) * nightly.WORLDS / nightly.WORLDS_AT_ONCE
    ordered = sorted(seen)
    steps = (after - before for before, after in itertools.pairwise(ordered))
    assert all(step >= nightly.WORLDS_AT_ONCE for step in steps)
    assert nightly.seed_of("991231", "f" * 40) * 10_000_000 + nightly.WORLDS < 1 << 64
    repeated = {part.name for part in nightly.PARTS if not part.is_new_each_night}
    assert repeated == {"previous", "mutations", "crosscheck", "packetdrill"}


def test_the_program_of_an_upgrade_is_built_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path / "out")
    monkeypatch.setattr(nightly, "git", lambda *_arguments: "28dd44b0" * 5)
    cargo = tmp_path / "cargo"
    cargo.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\necho "upgraded from it: 9 events, none lost"\n'
    )
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    # Both programs are built with the profile dev, whatever that of the call.
    assert nightly.main(["--only", "previous", "--profile", "release"]) == 0
    assert (tmp_path / "calls").read_text().splitlines() == [
        "build --profile dev --quiet --package fanin-node --example process",
        f"run --package fanin-node --example upgrade -- {'28dd44b0' * 5}",
    ]


def test_without_a_tag_upgrades_begin_at_the_first_commit_of_this_wire_format(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, before = "cabf486a" * 5, "d3cd3b04" * 5

    def git(*arguments: str) -> str:
        return {"log": first, "rev-parse": before}.get(arguments[0], "")

    monkeypatch.setattr(nightly, "git", git)
    runs = list(nightly.previous({}, Time(60.0, 1, "dev")))
    # The first commit greets as this one: once with its versions, once with version 1 alone.
    assert [run.command[7:] for run in runs] == [[first], [first, "1-1"], [before]]
    assert len({run.name for run in runs}) == 3
    words = "upgraded from it, process by process: 9 events, none lost\n"
    assert runs[0].judge(nightly.Ended(0, words)).passed
    assert not runs[0].judge(nightly.Ended(0, "refused\n")).passed
    stopped = words.replace("process by process", "after all processes had stopped")
    assert [run.judge(nightly.Ended(0, stopped)).passed for run in runs] == [False, False, True]
    monkeypatch.setattr(nightly, "git", lambda *_arguments: "")
    assert [run.name for run in nightly.previous({}, Time(60.0, 1, "dev"))] == ["none"]


def test_a_part_that_does_not_build_fails_and_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path / "out")
    part = parts(tmp_path, [0])[0]
    monkeypatch.setattr(nightly, "PARTS", (Part("part", 1.0, "a part", part.runs, ("--package", "p")),))
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'error: no such thing' >&2\necho more >&2\nexit 101\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert nightly.main(["--hours", "1"]) == 1
    output = capfd.readouterr().out
    assert "does not build: error: no such thing" in output
    assert output.endswith("\n0 passed, 1 failed\n")
    cargo.write_text("#!/bin/sh\n")
    assert nightly.main(["--hours", "1"]) == 0
    assert capfd.readouterr().out.endswith("\n1 passed, 0 failed\n")


def test_each_part_reads_what_its_command_prints() -> None:
    night = Time(60.0, 260101000000, "dev")
    by_name = {part.name: part for part in nightly.PARTS}

    def first(name: str) -> Run:
        return next(iter(by_name[name].runs({"totals": {}}, night)))

    progress = "16 of 2000 seeds, 0 failed; 9 events, 1 faults\n"
    summary = (
        progress + "2000 of 2000 seeds, 0 failed; 90 events, 9 faults, 4 s simulated in 5 s: 400.0 seeds/s\n"
    )
    assert first("worlds").judge(Ended(0, summary)).totals == {"worlds": 2000}
    assert not first("worlds").judge(Ended(0, summary.replace("\n2000 of", "\n1999 of"))).passed
    fed = first("fuzz").judge(Ended(0, "seed 1\nfuzz target atlas: 12 inputs\nfuzz target mdf: 30 inputs\n"))
    assert fed.passed
    assert fed.totals == {"inputs atlas": 12, "inputs mdf": 30, "inputs": 42}
    assert not first("fuzz").judge(Ended(0, "seed 1\n")).passed
    assert first("mutations").judge(Ended(0, "| a-bug | 404 seeds, 3 s | why |\n")).passed
    for missed in ("**not found** in 200 seeds", "does not build: []", "the text to change is there 0 times"):
        assert not first("mutations").judge(Ended(0, f"| a-bug | {missed} |\n")).passed
    met = "seed 1: 1 of 4 draws met mean ≤ 1.05\ndraws with timeouts 0, with drops 0, without a result "
    assert first("family").judge(Ended(1, met + "1\n")).passed
    assert not first("family").judge(Ended(1, met + "2\n")).passed
    assert not first("family").judge(Ended(2, "Traceback")).passed
    # Of 100 draws, some must meet the targets; four may all miss them.
    none = met.replace("1 of 4", "0 of 4") + "0\n"
    assert first("family").judge(Ended(1, none)).passed
    for earlier, passes in (("0 of 4", False), ("1 of 4", True)):
        done = {f"{number}": {"words": f"seed 1: {earlier} draws met"} for number in range(24)}
        run = next(iter(by_name["family"].runs({"runs": {"family": done}}, night)))
        assert run.judge(Ended(1, none)).passed == passes
    by_command = {run.command[4]: run for run in by_name["family"].runs({}, night)}
    assert set(by_command) == {"targets", "shipped", "family"}
    shipped = by_command["shipped"]
    assert shipped.judge(Ended(0, "without a result 0\n")).passed
    assert not shipped.judge(Ended(1, "without a result 1\n")).passed
    assert first("soak-live").judge(Ended(0, "all processes memory\n")).passed
    assert not first("soak-switch").judge(Ended(1, "all processes memory: GROWS\n")).passed
    measured = list(by_name["validation"].runs({}, night))[1]
    assert measured.judge(Ended(3, "needs root")).skipped
    assert not measured.judge(Ended(1, "drawn-01 differs")).passed
    # The set is judged: single cases may differ.
    words = "incast or not agrees in 18 of 20 cases (90.00 %), goal 97 %: missed\n"
    words += "mean without incast: median error 1.4 % of 15 cases, 2 beyond the goal of 10 %: missed\n"
    words += "goodput with incast: median error 26.0 % of 3 cases, 2 beyond the goal of 25 %: missed\n"
    assert measured.judge(Ended(1, words)).passed
    assert "18 of 20" in measured.judge(Ended(1, words)).words
    for from_, to in (("18 of 20", "15 of 20"), ("1.4 %", "10.1 %"), ("of 3 cases", "of 5 cases")):
        assert not measured.judge(Ended(1, words.replace(from_, to))).passed, to


def test_a_comparison_without_its_counterpart_is_skipped() -> None:
    night = Time(3600, 7, "dev")
    for part, code, text in [
        (nightly.losses, 3, "ns-3 is not installed: apt-get install g++ libns3-dev, or --ns3 FOLDER"),
        (nightly.crosscheck, 3, "ns-3 is not installed: apt-get install g++ libns3-dev, or --ns3 FOLDER"),
        (nightly.kernel, 3, "the comparison with the kernel needs root, for network namespaces"),
    ]:
        run = next(part({}, night))
        skipped = run.judge(Ended(code, text + "\n"))
        assert (skipped.skipped, skipped.words) == (True, text)
        failed = run.judge(Ended(1, "seed 7: segment 3 differs\n8 of 24 servers equal, 4 equal segments\n"))
        assert not failed.passed
        assert not failed.skipped
