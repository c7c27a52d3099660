"""The soak of a live system: it ends with a clean audit, and it finds what grows."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import soak


def held(kilobytes: list[int], descriptors: list[int]) -> list[soak.Sample]:
    """One process, sampled once a second."""
    both = zip(kilobytes, descriptors, strict=True)
    return [soak.Sample(float(at), 1, "logger", *values) for at, values in enumerate(both)]


def test_processes_are_killed_and_no_event_is_lost(root: Path, tmp_path: Path) -> None:
    binary = os.environ["FANIN_BIN"]
    command = [sys.executable, "scripts/soak.py", "live", "--minutes", "0.2", "--kill-every", "2"]
    command += ["--set", "supervisor.rate=20 Hz", "--binary", binary, "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    # In its first seconds a system fills its buffers, so that the code alone says nothing.
    assert run.returncode in (0, 1), run.stderr
    assert "exit code of the run: 0" in run.stdout, run.stdout + run.stderr
    assert "+ 0 lost" in run.stdout
    killed = run.stdout.split("\nkilled ")[1].split(":")[0]
    assert int(killed) >= 3
    assert (tmp_path / "live" / "samples.csv").read_text().count("logger") > 10


def test_a_run_that_is_refused_shows_its_own_error_and_exit_code(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "scripts/soak.py", "live", "--minutes", "0.2", "--set", "supervisor.rte=20 Hz"]
    command += ["--binary", os.environ["FANIN_BIN"], "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in run.stderr, run.stderr
    assert "unknown key `rte`" in run.stdout
    assert "exit code of the run: 2" in run.stdout
    assert run.returncode == 2


def test_few_samples_are_not_judged() -> None:
    assert not soak.can_judge([])
    assert not soak.can_judge(held([20_000] * 2, [12] * 2))
    assert soak.can_judge(held([20_000] * 9, [12] * 9))


def test_memory_that_fills_and_then_stays_is_no_leak(capsys: pytest.CaptureFixture[str]) -> None:
    filling = [min(1000 * second, 20_000) for second in range(100)]
    assert not soak.judge("a logger", held(filling, [12] * 100), None)
    assert "(+0.0 %)" in capsys.readouterr().out


def test_a_minute_has_time_to_fill_and_finds_a_leak() -> None:
    # As a switch on a busy machine: a heap grows when some work is done for the first time, after 25 s.
    filling = [13_300 + (900 if second >= 25 else 0) for second in range(60)]
    assert not soak.judge("a switch", held(filling, [18] * 60), None)
    leaking = [held_kb + 20 * second for second, held_kb in enumerate(filling)]
    assert soak.judge("a switch", held(leaking, [18] * 60), None)


def test_a_leak_of_memory_or_descriptors_is_found() -> None:
    leaking = [20_000 + 20 * second for second in range(100)]
    assert soak.judge("a logger", held(leaking, [12] * 100), None)
    descriptors = [12 + second // 8 for second in range(100)]
    assert soak.judge("a logger", held([20_000] * 100, descriptors), None)


def test_the_audit_at_the_end_is_no_growth() -> None:
    """The first process reads all journals, when the others have ended: that is not judged."""
    launcher = [soak.Sample(float(at), 1, "run", 3_000 if at < 100 else 180_000, 6) for at in range(150)]
    loggers = [soak.Sample(float(at), 2, "logger", 9_000, 5) for at in range(100)]
    samples = sorted(launcher + loggers, key=lambda each: each.at)
    assert soak.judge("first process", samples, 1)
    assert not soak.judge("first process", soak.before_audit(samples), 1)
    assert not soak.judge("all processes", soak.before_audit(samples), None)
    switch = [soak.Sample(float(at), 1, "switch", 8_000, 5) for at in range(100)]
    assert soak.before_audit(switch) == switch


def lives(memory: Callable[[float, float], float], hour: int = 3600) -> list[soak.Sample]:
    """Collectors that are killed one after another at random ages; `memory` by time and age, in kB."""
    chance = random.Random(1)
    samples = []
    for place in range(4):
        begin, number = 0, 0
        while begin < hour:
            end = min(hour, begin + chance.randint(60, 1500))
            pid = 100 * place + number
            samples += [
                soak.Sample(float(at), pid, "collector", int(memory(at, at - begin)), 9)
                for at in range(begin, end, 5)
            ]
            begin, number = end, number + 1
    return sorted(samples, key=lambda each: each.at)


def test_processes_of_random_ages_are_compared_at_equal_ages() -> None:
    fills = lives(lambda _, age: 9_000 + 4_000 * min(age / 300, 1))
    assert abs(soak.growth_at_equal_ages(fills) or 1) < 0.002
    assert not soak.judge_killed(fills)


def test_a_leak_with_the_time_or_the_age_is_found() -> None:
    assert soak.judge_killed(lives(lambda at, age: 9_000 + 4_000 * min(age / 300, 1) + at / 5))
    assert soak.judge_killed(lives(lambda _, age: 9_000 + age))


def test_a_short_run_has_too_few_processes_of_equal_ages(capsys: pytest.CaptureFixture[str]) -> None:
    short = [each for each in lives(lambda _, age: 9_000 + age) if each.at < 20]
    assert not soak.judge_killed(short)
    assert capsys.readouterr().out.count("memory is not judged") == 2


def test_a_number_that_two_processes_had_is_that_of_two() -> None:
    first = [soak.Sample(float(at), 7, "collector", 9_000, 9) for at in range(0, 200)]
    second = [soak.Sample(float(at), 7, "collector", 13_000, 9) for at in range(1400, 2000)]
    assert [len(life) for life in soak.lives(first + second)] == [200, 600]
    assert soak.growth_of_the_old(first + second) is None
