"""A random choice of scenarios at their extremes ends as it should; `extremes.py` plays all of them."""

import itertools
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import commands
import pytest
from extremes import (
    BASES,
    UNMEASURED,
    Case,
    Verdict,
    Watch,
    bases,
    companions,
    judge,
    keys,
    pairs,
    play,
    schema,
    singles,
    watched,
)

# Cases of each kind, all of which are played, also on a slow machine. The nightly runs play the others.
CASES = 60
Table = list[tuple[str, tuple[str, ...]]]
Choice = Callable[[Table], list[Case]]


def alone(table: Table) -> list[Case]:
    """Choose single keys."""
    return random.Random(1).sample(singles(table), CASES)


def in_pairs(table: Table) -> list[Case]:
    """Choose pairs of keys."""
    return pairs(table, CASES, seed=1)


def late(verdicts: list[Verdict]) -> str:
    """Return how many cases the machine was too busy to judge."""
    count = sum(verdict.kind == UNMEASURED for verdict in verdicts)
    return f", {count} of them too slowly to be judged" if count else ""


def assert_no_fault(played: Sequence[Sequence[str]], verdicts: Sequence[Verdict]) -> None:
    """Fail with each command line whose verdict is a fault."""
    faults = [f"{words}: {verdict}" for words, verdict in zip(played, verdicts, strict=True) if verdict.fault]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("choose", [alone, in_pairs])
def test_extremes_end_with_a_result_or_a_reason(choose: Choice, capsys: pytest.CaptureFixture[str]) -> None:
    fanin = os.environ["FANIN_BIN"]
    table = list(keys(schema(fanin)))
    cases = choose(table)
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda case: play(case, fanin), cases))
    left = len(singles(table)) - CASES if choose is alone else "all other pairs"
    with capsys.disabled():
        print(f"\n{len(verdicts)} cases {choose.__name__} were played{late(verdicts)}; not measured: {left}")
    assert_no_fault([case.command(fanin) for case in cases], verdicts)


@pytest.mark.parametrize(
    ("code", "summary", "said", "kind"),
    [
        (101, None, "thread 'main' panicked at x.rs:1", "abort"),
        (-6, None, "memory allocation of 9 bytes failed", "abort"),
        (-9, None, "", "hang"),
        (2, None, "error: something is wrong", "refusal"),
        (2, None, "warning: tor.buffer\nerror: something is wrong", "refusal"),
        (0, {"events": {"collected": 0}}, "", "silence"),
        (2, None, "error: the collector runs at a high rate", "refusal"),
        (2, None, "error: `core.buffer` is wrong\n --> --set:1:1\n1 | core.buffer=1 B", "refusal"),
        (1, {"events": {"collected": 3}}, "", "silence"),
        (1, {"events": {"collected": 3}}, "error: nothing moves at 65 s", "stall"),
        (130, {"speed": {"packet_hops": 0}}, "error: stopped", "hang"),
    ],
)
def test_faults_are_seen(code: int, summary: dict[str, dict[str, int]] | None, said: str, kind: str) -> None:
    case = Case("incast", (("tor.buffer", "1 B"),), ("tor.buffer",))
    verdict = judge(case, code, summary, said)
    assert verdict.kind == kind
    assert verdict.fault


@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (2, "error: a buffer of 1 B is small\n --> --set:1:12\n1 | tor.buffer=1 B", "refused"),
        (1, "error: nothing moves at 2 us", "lost"),
        (130, "error: stopped", "stopped"),
    ],
)
def test_good_ends_pass(code: int, said: str, kind: str) -> None:
    case = Case("incast", (("tor.buffer", "1 B"), ("run.stall_limit", "1 us")), ("tor.buffer",))
    verdict = judge(case, code, {"speed": {"packet_hops": 7}}, said)
    assert verdict == Verdict(kind)


@pytest.mark.parametrize(("hops", "kind"), [((90, 40), "stopped"), ((40, 40), "hang")])
def test_an_interrupted_run_must_have_moved(
    hops: tuple[int, int], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(hops)
    monkeypatch.setattr("extremes.attempt", lambda *_: (Verdict("stopped"), left.pop(0)))
    assert play(Case("incast", (), ()), "fanin").kind == kind


@pytest.mark.parametrize(
    ("seconds", "kind"),
    [
        (itertools.repeat(0.0), "hang"),
        (itertools.count(0.0, 1e-9), UNMEASURED),
        (itertools.repeat(3.0), "stopped"),
    ],
)
def test_wall_time_alone_is_no_fault(
    seconds: Iterator[float], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extremes.cpu_seconds", lambda _: next(seconds))
    monkeypatch.setattr("extremes.WALL_SECONDS", 0.5)
    monkeypatch.setattr("extremes.IDLE_SECONDS", 0.4)
    process = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE, text=True)
    _, watch = watched(process, 2.0)
    assert process.returncode == -signal.SIGINT
    assert watch.verdict(Verdict("stopped")).kind == kind


def test_a_late_end_by_itself_is_judged() -> None:
    process = subprocess.Popen(["false"], text=True)
    process.wait()
    watch = Watch(process, 2.0)
    watch.late = Verdict(UNMEASURED)
    assert watch.verdict(Verdict("abort", "exit 1")).kind == "abort"


def test_every_key_is_tried_in_every_system_that_reads_it() -> None:
    assert bases("transport.mtu") == tuple(BASES)
    assert bases("shaping.credits") == tuple(BASES)
    assert bases("core.buffer") == ("rack", "hybrid", "multihost")
    assert bases("spine.pause.xoff") == ("leaf-spine",)
    assert companions("spine.pause.xoff")["spine.pause.mode"] == "pause"


def test_other_commands_end_with_a_result_or_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    fanin = os.environ["FANIN_BIN"]
    jobs = commands.every(list(keys(schema(fanin))))
    chosen = random.Random(1).sample(jobs, CASES)
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda job: commands.play(job, fanin), chosen))
    with capsys.disabled():
        print(f"\n{CASES} commands were played{late(verdicts)}; not measured: {len(jobs) - CASES}")
    assert_no_fault([job.words(fanin, Path()) for job in chosen], verdicts)


@pytest.mark.parametrize(
    ("command", "code", "result", "said", "kind"),
    [
        ("plan", 101, None, "thread 'main' panicked at x.rs:1", "abort"),
        ("plan", 0, None, "", "silence"),
        ("plan", 130, None, "error: stopped", "hang"),
        ("check", 0, None, "", "silence"),
        ("compare", 2, None, "error: something is wrong", "refusal"),
        ("compare", 1, {}, "", "silence"),
        ("plan", 1, {}, "error: something", "exit"),
        ("check", 1, None, "error: something", "exit"),
        ("compare", 1, {}, "error: nothing moves at 65 s", "stall"),
        ("sweep", 1, {}, "error: nothing moves at 65 s", "stall"),
        ("sweep", -6, None, "", "abort"),
        ("sweep", -24, None, "", "hang"),
        ("sweep", 0, {"points": [{}]}, "", "silence"),
    ],
)
def test_faults_of_other_commands_are_seen(
    command: str, code: int, result: dict[str, list[dict[str, int]]] | None, said: str, kind: str
) -> None:
    job = commands.Job(command, Case("incast", (), ("tor.buffer",)), values=("1 B", "2 B"))
    verdict = commands.judge(job, code, result, said)
    assert verdict.kind == kind
    assert verdict.fault


def test_a_refusal_of_a_swept_key_and_a_whole_sweep_pass() -> None:
    job = commands.Job("sweep", Case("incast", (), ("tor.buffer",)), values=("1 B", "2 B"))
    assert commands.judge(job, 2, None, "error: x\n --> --sweep:1:1\n1 | tor.buffer=1 B") == Verdict(
        "refused"
    )
    assert commands.judge(job, 0, {"points": [{}, {}]}, "") == Verdict("result")


def test_a_sweep_over_a_short_limit_may_stall() -> None:
    job = commands.Job("sweep", Case("incast", (), ("run.stall_limit",)), values=("1 us", "24 h"))
    assert commands.judge(job, 1, {}, "error: nothing moves at 2 us") == Verdict("lost")


def test_each_system_meets_all_techniques_in_turn() -> None:
    compared = [job for job in commands.every([("transport.mtu", ("1",) * 16)]) if job.command == "compare"]
    for base in BASES:
        met = [job.techniques for job in compared if job.case.base == base]
        assert met == list(commands.TECHNIQUES) * 2
