"""A random choice of scenarios at their extremes ends as it should; `extremes.py` plays all of them."""

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from extremes import Case, Verdict, judge, keys, pairs, play, schema, singles

# Wall time after which no other case is begun, and the most cases.
SECONDS = 25.0
CASES = 120
Choice = Callable[[list[tuple[str, tuple[str, ...]]]], list[Case]]


def alone(table: list[tuple[str, tuple[str, ...]]]) -> list[Case]:
    """Choose single keys."""
    return random.Random(1).sample(singles(table), CASES)


def in_pairs(table: list[tuple[str, tuple[str, ...]]]) -> list[Case]:
    """Choose pairs of keys."""
    return pairs(table, CASES, seed=1)


@pytest.mark.parametrize("choose", [alone, in_pairs])
def test_extremes_end_with_a_result_or_a_reason(choose: Choice) -> None:
    fanin = os.environ["FANIN_BIN"]
    cases = choose(list(keys(schema(fanin))))
    begin = time.monotonic()

    def timely(case: Case) -> Verdict | None:
        return play(case, fanin) if time.monotonic() - begin < SECONDS else None

    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(timely, cases))
    assert verdicts[0] is not None
    faults = [
        f"{case.command(fanin)}: {verdict}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict and verdict.fault
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("code", "summary", "said", "kind"),
    [
        (101, None, "thread 'main' panicked at x.rs:1", "abort"),
        (-6, None, "memory allocation of 9 bytes failed", "abort"),
        (-9, None, "", "hang"),
        (2, None, "error: something is wrong", "refusal"),
        (2, None, "warning: tor.buffer\nerror: something is wrong", "refusal"),
        (0, {"events": {"collected": 0}}, "", "silence"),
        (1, {"events": {"collected": 3}}, "", "silence"),
        (130, {"speed": {"packet_hops": 0}}, "error: stopped", "hang"),
    ],
)
def test_faults_are_seen(code: int, summary: dict[str, dict[str, int]] | None, said: str, kind: str) -> None:
    case = Case("incast", (("tor.buffer", "1 B"),), ("tor.buffer",))
    verdict = judge(case, code, summary, said)
    assert verdict.kind == kind
    assert verdict.fault
