"""Measures how near to the limit a technique comes: on named targets, on random systems, with wrong settings.

    python scripts/limits.py targets                       the table of named targets, and the figures reached
    python scripts/limits.py family --draws 100            random systems; the seed is drawn and printed
    python scripts/limits.py family --draws 100 --seed 7   the same systems again
    python scripts/limits.py map --figure MAP.svg          techniques with errors of their main parameter

Without `--set`, the technique is `shaping.method=paced-credits`. The command is `--fanin`, or `FANIN_BIN`.
Each run may take `--cpu-seconds` of processor time; a run that takes longer counts as failed.
"""

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from random_systems import FRAME_BYTES, SEGMENT_BYTES, Settings, draw

ROOT = Path(__file__).resolve().parent.parent
# The targets of the family: mean and p99 of `slowdown_bound`.
FAMILY_MEAN, FAMILY_P99 = 1.05, 1.25


@dataclass(frozen=True)
class Run:
    """The figures of one simulation, or the reason why there are none."""

    summary: dict[str, Any]
    failure: str = ""
    #: The largest queue towards a collector, in kilobytes; NaN if none of the five fullest leads to one.
    collector_queue_kb: float = math.nan

    def figure(self, *names: str) -> float:
        """Return the first of these figures that the summary has, by dotted names; else NaN."""
        for name in names:
            node: Any = self.summary
            for part in name.split("."):
                node = node.get(part) if isinstance(node, dict) else None
            if isinstance(node, int | float):
                return float(node)
        return math.nan

    @property
    def mean(self) -> float:
        """Mean slowdown over the bound, or over the ideal where there is no bound."""
        return self.figure("slowdown_bound.mean", "slowdown.mean")

    @property
    def p99(self) -> float:
        """99th percentile of the slowdown over that of the bound."""
        return self.figure("slowdown_bound.p99", "slowdown.p99")

    @property
    def drops(self) -> float:
        """Frames that switches dropped."""
        return self.figure("network.drops")

    @property
    def timeouts(self) -> float:
        """Timeouts of all senders."""
        return self.figure("tcp.timeouts")

    @property
    def queue_kb(self) -> float:
        """The largest queue of a switch in kilobytes."""
        return self.figure("network.queue_bytes_max") / 1e3


def collector_queue_kb(picture: Path) -> float:
    """Read the largest queue towards a collector from the picture of a run, in kilobytes."""
    ports = json.loads(picture.read_text())["timeline"]["ports"] if picture.exists() else []
    queues = [max(port["queue_bytes"]) for port in ports if "->collector:" in port["name"]]
    return max(queues, default=math.nan) / 1e3


@dataclass(frozen=True)
class Simulator:
    """The command, the settings of the technique, and the limit of a run."""

    fanin: str
    technique: Settings
    cpu_seconds: int

    def run(self, preset: str, settings: Mapping[str, str], folder: Path | None = None) -> Run:
        """Simulate a preset with settings; the technique's come last. A folder takes the run's files."""
        sets = {**settings, **self.technique}
        command = [self.fanin, "sim", preset, "--quiet", "--json", "-", "--threads", "1"]
        command += ["--out", str(folder)] if folder else []
        command += [f"--set={key}={value}" for key, value in sets.items()]
        limit = self.cpu_seconds

        def prepare() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 2))
            os.nice(10)

        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=prepare)
        try:
            summary = json.loads(done.stdout)
        except json.JSONDecodeError:
            reasons = [line for line in done.stderr.splitlines() if line.startswith("error")]
            why = (
                f"no result within {limit} s of processor time" if done.returncode < 0 else done.stderr[-200:]
            )
            return Run({}, reasons[0] if reasons else why)
        stalled = "nothing moved any more" if done.returncode == 1 else ""
        return Run(summary, stalled, collector_queue_kb(folder / "picture.json") if folder else math.nan)


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

    @property
    def has_ceiling(self) -> bool:
        """True for rounds of one aggregator, whose shortest time a run without losses shows."""
        return bool(self.goodput) and math.isnan(self.wire_bps)

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


def whole(number: float) -> str:
    """Return a count, or a dash where there is none."""
    return "-" if math.isnan(number) else f"{number:.0f}"


def kilobytes(number: float) -> str:
    """Return a size, or a dash where there is none."""
    return "-" if math.isnan(number) else f"{number:.0f} kB"


def row(*cells: str) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"


RACK = {"run.duration": "400 ms", "run.warmup": "200 ms", "supervisor.policy": "node-round-robin"}
PORTS = {"tor.buffer": "64 kB", "tor.uplink_buffer": "64 kB"}
# All requests at once and no limit of memory: no request waits, no frame is lost, and the last link
# never idles while an answer waits. No receiver ends a round earlier.
CEILING = {"shaping.method": "none", "tor.buffering": "unlimited"}
SIZES = '{{ distribution = "log-normal", mean = "1.1 kB", sigma = {sigma} }}'


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
    for sigma in ("0.25", "0.5"):
        sizes = RACK | {"readout.fragment_size": SIZES.format(sigma=sigma)}
        name = f"thesis A, 1000 Hz, log-normal {sigma}"
        table.append(Target(name, "thesis-a-1000hz", sizes, mean=1.02, p99=1.10))
        table.append(Target(f"{name}, 64 kB a port", "thesis-a-1000hz", sizes | PORTS, mean=1.02, p99=1.10))
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
    table.append(
        Target("all-to-all, rotated requests", "lcn15-all-to-all", pairs, goodput=0.97, wire_bps=payload)
    )
    for senders in (2, 16, 128, 1024, 2048):
        for size, count in (("1 kB", 1e3), ("32 kB", 32e3), ("256 kB", 256e3), ("1 MB", 1e6)):
            # Four rounds, of at most 600 MB together.
            seconds = max(4 * senders * count * 8 / 1e9, 0.1)
            if seconds > 5:
                continue
            barrier = {"workload.senders": str(senders), "workload.request_size": size}
            barrier["run.duration"] = f"{round(seconds * 1e3)} ms"
            table.append(Target(f"incast, {senders} x {size}", "incast", barrier, goodput=0.98))
    return table


# Targets that paced credits miss. Any other one that is missed is a step back.
MISSED = frozenset(
    {
        "all-to-all, rotated requests",
        "incast, 1024 x 1 kB",
        "incast, 128 x 1 kB",
        "incast, 16 x 1 kB",
        "incast, 2 x 1 kB",
        "incast, 2 x 32 kB",
        "incast, 2048 x 1 kB",
        "thesis A, 1000 Hz",
        "thesis A, 1000 Hz, 64 kB a port",
        "thesis A, 1000 Hz, log-normal 0.25",
        "thesis A, 1000 Hz, log-normal 0.25, 64 kB a port",
        "thesis A, 1000 Hz, log-normal 0.5",
        "thesis A, 1000 Hz, log-normal 0.5, 64 kB a port",
        "thesis A, 64 kB shared by all ports",
        "thesis A, FCFS from the first second",
        "thesis B, 1000 Hz",
    }
)


def run_targets(simulator: Simulator, only: str, threads: int, seed: Settings) -> int:
    """Print the table of the targets; return how many are missed, without those of `MISSED`."""
    chosen = [target for target in targets() if only in target.name]
    heads = ("target", "wanted", "reached", "drops", "timeouts", "largest queue", "to a collector", "met")
    print(row(*heads, "ceiling"))
    print("|---" * (len(heads) + 1) + "|")
    reference = Simulator(simulator.fanin, CEILING, simulator.cpu_seconds)

    def play(target: Target) -> tuple[bool, bool, str]:
        with TemporaryDirectory() as folder:
            run = simulator.run(target.preset, target.settings | seed, Path(folder) / "run")
        ceiling = math.inf
        if target.has_ceiling:
            ceiling = target.ceiling(reference.run(target.preset, target.settings | seed))
        return target.judge(run, ceiling)

    near = 0
    met, missed = set[str](), set[str]()
    with ThreadPoolExecutor(threads) as pool:
        for target, (is_met, is_near, text) in zip(chosen, pool.map(play, chosen), strict=True):
            near += is_near
            (met if is_met else missed).add(target.name)
            print(text, flush=True)
    print(f"\n{len(met)} of {len(chosen)} targets are met, {near} with the ceiling in place of the wire")
    lost, gained = sorted(missed - MISSED), sorted(met & MISSED)
    if lost:
        print(f"lost: {'; '.join(lost)}")
    if gained:
        print(f"met now: {'; '.join(gained)}")
    return len(lost)


def run_family(simulator: Simulator, seed: int, numbers: Sequence[int], threads: int, worst: int) -> int:
    """Print the figures of random systems and name the worst; return how many miss the targets."""
    draws = [draw(seed, number) for number in numbers]
    with ThreadPoolExecutor(threads) as pool:
        runs = list(pool.map(lambda one: simulator.run("thesis-a-1000hz", one.settings), draws))
    good = [run for run in runs if not math.isnan(run.mean)]
    failed = [(one, run) for one, run in zip(draws, runs, strict=True) if math.isnan(run.mean)]
    met = [
        run.mean <= FAMILY_MEAN and run.p99 <= FAMILY_P99 and run.timeouts == 0 and not run.failure
        for run in runs
    ]
    order = sorted(zip(draws, runs, strict=True), key=lambda pair: badness(pair[1]), reverse=True)
    print(
        f"seed {seed}: {sum(met)} of {len(runs)} draws met mean ≤ {FAMILY_MEAN}, p99 ≤ {FAMILY_P99}, "
        "and had no timeout"
    )
    # The bound does not count the traffic of other tenants.
    for name, is_shared in (("alone", False), ("with other tenants", True)):
        group = [is_met for one, is_met in zip(draws, met, strict=True) if (one.tenants > 1) is is_shared]
        print(f"{name}: {sum(group)} of {len(group)} met them")
    if good:
        means, tails = sorted(run.mean for run in good), sorted(run.p99 for run in good)
        print(
            f"mean slowdown over the bound: median {quantile(means, 0.5):.3f}, "
            f"90 % {quantile(means, 0.9):.3f}, "
            f"worst {means[-1]:.3f}"
        )
        print(
            f"its p99: median {quantile(tails, 0.5):.3f}, 90 % {quantile(tails, 0.9):.3f}, "
            f"worst {tails[-1]:.3f}"
        )
        print(f"events in a run: at least {min(run.figure('events.collected') for run in good):.0f}")
        print(
            f"draws with timeouts {sum(run.timeouts > 0 for run in good)}, "
            f"with drops {sum(run.drops > 0 for run in good)}, without a result {len(failed)}"
        )
    print(f"\nThe worst; `--seed {seed} --draw N` plays one again:\n")
    print(row("draw", "mean", "p99", "drops", "timeouts", "system"))
    print("|---|---|---|---|---|---|")
    for one, run in order[:worst]:
        system = one.words + (f"; {run.failure}" if run.failure else "")
        figures = (f"{run.mean:.3f}", f"{run.p99:.2f}", whole(run.drops), whole(run.timeouts))
        print(row(str(one.number), *figures, system))
    return len(runs) - sum(met)


def badness(run: Run) -> float:
    """Return a number that is larger for a worse run."""
    return math.inf if math.isnan(run.mean) else max(run.mean / FAMILY_MEAN, run.p99 / FAMILY_P99)


def quantile(numbers: Sequence[float], share: float) -> float:
    """Return the number at this share of sorted numbers."""
    return numbers[min(int(share * len(numbers)), len(numbers) - 1)]


@dataclass(frozen=True)
class Knob:
    """A technique, its main parameter, and the value on thesis A."""

    name: str
    settings: Settings
    key: str
    value: Callable[[float], str]


KNOBS = (
    Knob("credits", {"shaping.method": "credits"}, "shaping.credits", lambda x: f"{round(480 * x)}"),
    Knob(
        "static window",
        {"shaping.method": "none", "transport.congestion_control": "static"},
        "transport.static_window",
        lambda x: f"{max(round(2 * x), 1)}",
    ),
    Knob(
        "DIATCP",
        {"shaping.method": "none", "transport.congestion_control": "diatcp"},
        "transport.diatcp.global_window",
        lambda x: f"{round(160 * x)}",
    ),
    Knob(
        "DCTCP",
        {
            "shaping.method": "none",
            "transport.congestion_control": "dctcp",
            "tor.ecn.mode": "threshold",
            "transport.delayed_ack": "false",
        },
        "tor.ecn.threshold",
        lambda x: f"{round(20 * x)}",
    ),
    Knob(
        "deep rings",
        {"shaping.method": "none", "tor.buffering": "daqring"},
        "tor.daqring.frames",
        lambda x: f"{round(4096 * x)}",
    ),
    Knob(
        "least RTO",
        {"shaping.method": "none", "transport.delayed_ack": "false"},
        "transport.rto_min",
        lambda x: f"{5 * x:g} ms",
    ),
    Knob(
        "Swift",
        {
            "shaping.method": "none",
            "transport.congestion_control": "swift",
            "transport.delayed_ack": "false",
        },
        "transport.swift.target",
        lambda x: f"{round(1000 * x)} us",
    ),
    Knob(
        "SIRD",
        {"shaping.method": "none", "transport.congestion_control": "sird"},
        "transport.sird.bucket",
        lambda x: f"{1.5 * x:.4f}",
    ),
    Knob(
        "Fastpass",
        {"shaping.method": "fastpass"},
        "shaping.fastpass.advance",
        lambda x: f"{round(25 * x)} us",
    ),
)
ERRORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def run_map(simulator: Simulator, threads: int, figure: Path | None) -> None:
    """Print the mean slowdown of each technique, with its parameter wrong by each of the errors."""
    print(row("technique", "parameter", *(f"x {error:g}" for error in ERRORS)))
    print("|---" * (len(ERRORS) + 2) + "|")
    cases: list[tuple[str, str, list[Settings]]] = [
        (knob.name, f"`{knob.key}`", [knob.settings | {knob.key: knob.value(error)} for error in ERRORS])
        for knob in KNOBS
    ]
    cases.append(("paced credits", "none", [{"shaping.method": "paced-credits"}]))
    curves: dict[str, list[Run]] = {}
    with ThreadPoolExecutor(threads) as pool:
        for name, key, points in cases:
            runs = list(pool.map(lambda sets: simulator.run("thesis-a-1000hz", RACK | sets), points))
            runs = runs if len(runs) == len(ERRORS) else runs * len(ERRORS)
            curves[name] = runs
            cells = [
                run.failure or f"{run.mean:.3f} ({run.p99:.2f})" + (", drops" if run.drops else "")
                for run in runs
            ]
            print(row(name, key, *cells), flush=True)
    if figure is not None:
        draw_map(curves, figure)


def draw_map(curves: Mapping[str, Sequence[Run]], path: Path) -> None:
    """Draw the mean slowdowns over the error of the parameter; hollow points dropped frames."""
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "fanin", "font.size": 10})
    page, axes = pyplot.subplots(figsize=(7.4, 4.6), layout="constrained")
    # Okabe and Ito's colours, which people with colour blindness distinguish; markers differ, too.
    colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"]
    colours += ["#d55e00", "#999999", "#7a5195", "#8c564b"]
    for number, (name, runs) in enumerate(curves.items()):
        is_ours = name == "paced credits"
        colour = "black" if is_ours else colours[number % len(colours)]
        means = [run.mean for run in runs]
        axes.plot(ERRORS, means, color=colour, linewidth=2.5 if is_ours else 1.4, zorder=2 + is_ours)
        for error, run in zip(ERRORS, runs, strict=True):
            face = "white" if run.drops else colour
            marker = "osD^vPXp*"[number % 9]
            axes.plot(error, run.mean, marker, color=colour, markerfacecolor=face, markersize=6, zorder=4)
        axes.plot([], [], marker, color=colour, linestyle="-", label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    slowdowns = (1, 2, 5, 10, 20, 50, 100, 200)
    axes.set_yticks(slowdowns, [str(slowdown) for slowdown in slowdowns])
    axes.minorticks_off()
    axes.set_xticks(ERRORS, [f"x {error:g}" for error in ERRORS])
    axes.set_xlabel("Main parameter, against its value for this rack")
    axes.set_ylabel("Mean slowdown over the bound")
    axes.set_title("Thesis rack A at 1000 Hz; hollow: frames were dropped", fontsize=10)
    axes.grid(which="major", color="#dddddd")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    page.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("targets", "family", "map"))
    default = os.environ.get("FANIN_BIN", str(ROOT / "target" / "release" / "fanin"))
    parser.add_argument("--fanin", default=default, help="the command")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="the technique's settings"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cpu-seconds", type=int, default=120)
    parser.add_argument("--only", default="", help="targets: those whose names contain this text")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--draw", type=int, help="family: this draw alone, with its settings")
    parser.add_argument(
        "--seed", type=int, help="in place of the scenarios' seed, or of one that is drawn now (family)"
    )
    parser.add_argument("--figure", type=Path, help="map: draw it into this file (.svg, .png or .pdf)")
    parser.add_argument("--worst", type=int, default=5, help="family: how many of the worst are named")
    options = parser.parse_args(arguments)
    pairs = options.set or ["shaping.method=paced-credits"]
    technique = dict(pair.split("=", 1) for pair in pairs)
    if options.part == "map":
        run_map(Simulator(options.fanin, {}, options.cpu_seconds), options.threads, options.figure)
        return 0
    simulator = Simulator(options.fanin, technique, options.cpu_seconds)
    if options.part == "targets":
        own_seed = {} if options.seed is None else {"run.seed": str(options.seed)}
        return 1 if run_targets(simulator, options.only, options.threads, own_seed) else 0
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    numbers = range(options.draws) if options.draw is None else [options.draw]
    if options.draw is not None:
        sets = draw(seed, options.draw).settings | technique
        print(
            f"{options.fanin} sim thesis-a-1000hz "
            + " ".join(f"--set '{key}={value}'" for key, value in sets.items())
        )
    return 1 if run_family(simulator, seed, numbers, options.threads, options.worst) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
