"""The nightly runs: each is done once on a commit, all are counted, and a night that was stopped goes on."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import nightly
import pytest
from nightly import Ended, Part, Run, State, Time, Verdict


def parts(folder: Path, codes: list[int]) -> tuple[Part, ...]:
    """Make a part of runs that end with these codes, and leave a line in a file each time."""

    def runs(_state: State, _night: Time) -> Iterator[Run]:
        for number, code in enumerate(codes):
            script = f"open({str(folder / 'calls')!r}, 'a').write('{number} '); print('inputs'); exit({code})"
            judge = lambda ended: Verdict(ended.code == 0, "said", totals={"inputs": 5})  # noqa: E731
            yield Run(f"run-{number}", [sys.executable, "-c", script], judge)

    return (Part("part", 1.0, "a part", runs),)


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
    assert "the time is over; next is run-0" in capfd.readouterr().out
    assert nightly.main(["--hours", "1"]) == 0
    assert capfd.readouterr().out.endswith("2 passed, 0 failed\n")


def test_a_run_past_its_time_is_ended_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly, "OUT", tmp_path)
    sleeper = Run("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"], nightly.by_code(""))
    ended = nightly.execute(parts(tmp_path, [])[0], sleeper, 0.2)
    assert ended.code == -1
    assert not sleeper.judge(ended).passed


def test_each_part_reads_what_its_command_prints() -> None:
    night = Time(60.0, 20260101, "dev")
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
    assert first("soak-live").judge(Ended(0, "all processes memory\n")).passed
    assert not first("soak-switch").judge(Ended(1, "all processes memory: GROWS\n")).passed
    measured = list(by_name["validation"].runs({}, night))[1]
    assert measured.judge(Ended(3, "needs root")).skipped
    assert not measured.judge(Ended(1, "drawn-01 differs")).passed
