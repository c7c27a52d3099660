"""The named targets of `scripts/limits.py targets`: scenarios, and the figures wanted there."""

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

from random_systems import FRAME_BYTES, SEGMENT_BYTES
from technique_runs import Run, Settings, kilobytes, row, whole

RACK = {"run.duration": "400 ms", "run.warmup": "200 ms", "supervisor.policy": "node-round-robin"}
PORTS = {"tor.buffer": "64 kB", "tor.uplink_buffer": "64 kB"}
# All requests at once and no limit of memory: no request waits and no frame is lost. The last link
# never idles while an answer waits. No receiver ends a round earlier.
CEILING = {"shaping.method": "none", "tor.buffering": "unlimited"}
SIZES = '{{ distribution = "log-normal", mean = "1.1 kB", sigma = {sigma} }}'


@dataclass(frozen=True)
class Target:
    """A named target: a scenario, its settings, and the limits of its figures."""

    name: str
    preset: str
    settings: Settings
    #: Largest mean and p99 of the slowdown, or the least share of the wire as goodput.
    mean: float = math.inf
    p99: float = math.inf
    goodput: float = 0.0
    #: Goodput that the wire permits, in bits per second; NaN: a round trip and the wire for each round.
    wire_bps: float = math.nan
    queue_kb: float = math.inf
    #: The share of the wire that headers and acknowledgements leave; NaN if a run of `CEILING` shows it.
    counted: float = math.nan
    #: A run of `CEILING` has timeouts, as its queue lasts longer than 200 ms.
    is_large: bool = False

    @property
    def has_ceiling(self) -> bool:
        """True for rounds of one aggregator, whose shortest time a run without losses shows."""
        return bool(self.goodput) and math.isnan(self.wire_bps) and not self.is_large

    def share(self, run: Run) -> float:
        """Return the share of the wire that carries data."""
        # A duration may end within a round, which matters if there are few: their mean time does not.
        return 1 / run.mean if math.isnan(self.wire_bps) else run.figure("goodput_bps.total") / self.wire_bps

    def ceiling(self, reference: Run) -> float:
        """Return the share of the wire in a run of `CEILING`. Infinity: with timeouts it is no ceiling."""
        is_ceiling = not reference.failure and reference.timeouts == 0 and reference.drops == 0
        return self.share(reference) if is_ceiling else math.inf

    def judge(self, run: Run, ceiling: float = math.inf) -> tuple[bool, bool, str]:
        """Return true if the target is reached, true if it or its share of the ceiling is, and the row."""
        wanted, reached = [], []
        is_met = not run.failure
        is_near = False
        if self.goodput:
            share = self.share(run)
            is_near = is_met and share >= self.goodput * ceiling
            wanted.append(f"≥ {self.goodput:.2f} of the wire")
            reached.append(f"{share:.3f} of the wire")
            is_met &= share >= self.goodput
        if self.mean < math.inf:
            wanted.append(f"≤ {self.mean:.2f}" + (f" ({self.p99:.2f})" if self.p99 < math.inf else ""))
            reached.append(f"{run.mean:.3f} ({run.p99:.2f})")
            is_met &= run.mean <= self.mean and (self.p99 == math.inf or run.p99 <= self.p99)
        if self.queue_kb < math.inf:
            wanted.append(f"queue ≤ {self.queue_kb:.0f} kB")
            # Without a queue towards a collector among the five largest, theirs is below the largest.
            queue_kb = run.queue_kb if math.isnan(run.collector_queue_kb) else run.collector_queue_kb
            is_met &= queue_kb <= self.queue_kb
        if run.failure:
            reached = [run.failure.removeprefix("error: ")]
        cells = [self.name, ", ".join(wanted), ", ".join(reached), whole(run.drops), whole(run.timeouts)]
        cells += [kilobytes(run.queue_kb), kilobytes(run.collector_queue_kb), "yes" if is_met else "no"]
        cells.append("-" if math.isinf(ceiling) else f"{ceiling:.3f}")
        return is_met, is_met or is_near, row(*cells)


def targets() -> list[Target]:
    """Return the named targets of issue 20."""
    table = []
    for rate in (500, 1000):
        for letter in "ab":
            name = f"thesis {letter.upper()}, {rate} Hz"
            table.append(Target(name, f"thesis-{letter}-{rate}hz", RACK, 1.01, 1.03, queue_kb=90))
        # With a memory of its own for each port, B is A.
        name = f"thesis A, {rate} Hz, 64 kB a port"
        table.append(Target(name, f"thesis-a-{rate}hz", RACK | PORTS, 1.01, 1.03, queue_kb=90))
    for rate, sigma in itertools.product((500, 1000), ("0.25", "0.5")):
        sizes = RACK | {"readout.fragment_size": SIZES.format(sigma=sigma)}
        name, preset = f"thesis A, {rate} Hz, log-normal {sigma}", f"thesis-a-{rate}hz"
        table.append(Target(name, preset, sizes, 1.02, 1.10, queue_kb=90))
        table.append(Target(f"{name}, 64 kB a port", preset, sizes | PORTS, 1.02, 1.10, queue_kb=90))
    icc = {"run.duration": "300 ms", "run.warmup": "200 ms"}
    table.append(Target("ICC'15, 39 collectors", "icc15-39dcm", icc, mean=1.01, p99=1.10))
    # The bound does not know a backlog of the warm-up: there is none.
    fcfs = {"run.duration": "1.2 s", "run.warmup": "0 s", "supervisor.policy": "fcfs"}
    table.append(Target("thesis A, FCFS from the first second", "thesis-a-1000hz", fcfs, mean=1.10))
    chance = {"run.duration": "600 ms", "run.warmup": "0 s", "supervisor.policy": "random"}
    table.append(Target("thesis A, random policy", "thesis-a-1000hz", chance, mean=1.05))
    table.append(
        Target("thesis A, random policy, 64 kB a port", "thesis-a-1000hz", chance | PORTS, mean=1.05)
    )
    full = RACK | {"supervisor.rate": "1087 Hz"}
    table.append(Target("thesis A, uplinks at 99 %", "thesis-a-1000hz", full, mean=1.10))
    for rate in (500, 1000):
        name = f"thesis A, {rate} Hz, each link loses 1e-4"
        table.append(Target(name, f"thesis-a-{rate}hz", RACK | {"link.loss": "0.0001"}, mean=1.3))
    shared = RACK | {"tor.buffering": "shared", "tor.buffer": "64 kB"}
    table.append(Target("thesis A, 64 kB shared by all ports", "thesis-a-1000hz", shared, mean=1.02))
    pairs = {"run.duration": "150 ms", "run.warmup": "40 ms", "run.stall_limit": "2 s"}
    pairs |= {"transport.congestion_control": "cubic", "tor.buffering": "dedicated"}
    pairs |= {"shaping.request_order": "rotated"}
    payload = 120e9 * SEGMENT_BYTES / FRAME_BYTES
    counted = all_to_all_ceiling() / payload
    table.append(
        Target(
            "all-to-all, rotated requests",
            "lcn15-all-to-all",
            pairs,
            goodput=0.97,
            wire_bps=payload,
            counted=counted,
        )
    )
    for senders in (2, 16, 128, 1024, 2048):
        for size, count in (("1 kB", 1e3), ("32 kB", 32e3), ("256 kB", 256e3), ("1 MB", 1e6)):
            # Four rounds.
            seconds = max(4 * senders * count * 8 / 1e9, 0.1)
            barrier = {"workload.senders": str(senders), "workload.request_size": size}
            barrier["run.duration"] = f"{round(seconds * 1e3)} ms"
            name = f"incast, {senders} x {size}"
            table.append(Target(name, "incast", barrier, goodput=0.98, is_large=seconds > 5))
            if size == "1 kB":
                # Answers carry the acknowledgements of requests, which else are frames on the same link.
                linux = barrier | {"transport.profile": "linux-6"}
                table.append(Target(f"{name}, linux-6", "incast", linux, goodput=0.98))
    return table


def all_to_all_ceiling() -> float:
    """Return the most payload of `lcn15-all-to-all` in bits per second, with one request to each readout.

    A host receives answers, and acknowledgements of the answers that it sends: one for two segments.
    By symmetry it also receives as many requests as it sends.
    """
    payload = 90 * 1447
    # Headers of an answer, a request and a frame, and a fragment's name: `crates/dataflow/src/message.rs`.
    answer, request, header, name = 22, 20, FRAME_BYTES - SEGMENT_BYTES, 4
    segments = math.ceil((payload + answer) / SEGMENT_BYTES)
    answers = payload + answer + segments * header
    return 120e9 * payload / (answers + segments / 2 * header + request + 90 * name + header)


# Targets that paced credits miss, with what they must still reach there: the figures of seed 1 and a margin.
# A worse run, or any other target that is missed, is a step back.
MISSED: dict[str, dict[str, Any]] = {
    "all-to-all, rotated requests": {"goodput": 0.90},
    "incast, 1024 x 1 kB": {"goodput": 0.92},
    "incast, 128 x 1 kB": {"goodput": 0.92},
    "incast, 16 x 1 kB": {"goodput": 0.915},
    "incast, 16 x 1 kB, linux-6": {"goodput": 0.92},
    "incast, 2 x 1 kB": {"goodput": 0.665},
    "incast, 2 x 1 kB, linux-6": {"goodput": 0.665},
    "incast, 2 x 32 kB": {"goodput": 0.91},
    "incast, 2048 x 1 kB": {"goodput": 0.92},
    "thesis A, 1000 Hz": {"mean": 1.014, "p99": 1.05},
    "thesis A, 1000 Hz, 64 kB a port": {"mean": 1.014, "p99": 1.05},
    "thesis A, 1000 Hz, log-normal 0.25": {"mean": 1.03, "p99": 1.12},
    "thesis A, 1000 Hz, log-normal 0.25, 64 kB a port": {"mean": 1.03, "p99": 1.12},
    "thesis A, 1000 Hz, log-normal 0.5": {"mean": 1.08, "p99": 1.4, "queue_kb": 100},
    "thesis A, 1000 Hz, log-normal 0.5, 64 kB a port": {"mean": 1.2, "p99": 3.0},
    "thesis A, 500 Hz, log-normal 0.5": {"mean": 1.045, "p99": 1.25, "queue_kb": 140},
    "thesis A, 500 Hz, log-normal 0.5, 64 kB a port": {"mean": 1.3, "p99": 10},
    "thesis A, 64 kB shared by all ports": {"mean": 40},
    "thesis B, 1000 Hz": {"mean": 1.014, "p99": 1.05},
}


def is_step_back(target: Target, run: Run) -> bool:
    """Return true if a run misses a target, and is worse than `MISSED` allows there."""
    return not dataclasses.replace(target, **MISSED.get(target.name, {})).judge(run)[0]
