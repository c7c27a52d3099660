"""Measures how near to the limit a technique comes: on named targets, on random systems, with wrong settings.

    python scripts/limits.py targets                       the table of named targets, and the figures reached
    python scripts/limits.py shipped                       every shipped scenario with requests
    python scripts/limits.py family --draws 100            random systems; the seed is drawn and printed
    python scripts/limits.py family --draws 100 --seed 7   the same systems again
    python scripts/limits.py map --figure MAP.svg          techniques with errors of their main parameter

Without `--set`, the technique is `shaping.method=paced-credits`. The command is `--fanin`, or `FANIN_BIN`.
Each run may take `--cpu-seconds` of processor time; a run that takes longer counts as failed.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from named_targets import CEILING, MISSED, RACK, Target, is_step_back, targets
from random_systems import draw
from technique_runs import TOO_LONG, Run, Settings, Simulator, kilobytes, row, whole

ROOT = Path(__file__).resolve().parent.parent
# The targets of the family: mean and p99 of `slowdown_bound`.
FAMILY_MEAN, FAMILY_P99 = 1.05, 1.25


def run_targets(simulator: Simulator, only: str, threads: int, seed: Settings) -> int:
    """Print the table of the targets; return how many are steps back, as `is_step_back` says."""
    chosen = [target for target in targets() if only in target.name]
    heads = ("target", "wanted", "reached", "drops", "timeouts", "largest queue", "to a collector", "met")
    print(row(*heads, "ceiling"))
    print("|---" * (len(heads) + 1) + "|")
    reference = Simulator(simulator.fanin, CEILING, simulator.cpu_seconds)

    def play(target: Target) -> tuple[bool, bool, bool, str]:
        with TemporaryDirectory() as folder:
            run = simulator.run(target.preset, target.settings | seed, Path(folder) / "run")
        ceiling = math.inf if math.isnan(target.counted) else target.counted
        if target.has_ceiling:
            ceiling = target.ceiling(reference.run(target.preset, target.settings | seed))
        return is_step_back(target, run), *target.judge(run, ceiling)

    near = 0
    met, lost = list[str](), list[str]()
    with ThreadPoolExecutor(threads) as pool:
        for target, (is_lost, is_met, is_near, text) in zip(chosen, pool.map(play, chosen), strict=True):
            near += is_near
            met += [target.name] * is_met
            lost += [target.name] * is_lost
            print(text, flush=True)
    print(f"\n{len(met)} of {len(chosen)} targets are met, {near} with the ceiling in place of the wire")
    gained = [name for name in met if name in MISSED]
    if lost:
        print(f"lost: {'; '.join(lost)}")
    if gained:
        print(f"met now: {'; '.join(gained)}")
    return len(lost)


# Shipped scenarios are cut to this time.
SHIPPED_SECONDS_MAX = 2.0
# Shipped scenarios that may end at the limit of processor time.
LONG = ("leaf-spine-terabit", "phase2")
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}


def seconds_of(text: str) -> float:
    """Read a duration as `fanin scenario show` prints it."""
    number, unit = text.split()
    return float(number) * SECONDS[unit]


def shipped(fanin: str) -> dict[str, Settings]:
    """Return the presets whose receivers request, with the settings that cut them to the longest time.

    The bound knows no backlog of a warm-up: there is none.
    """

    def command(*words: str) -> str:
        return subprocess.run([fanin, "scenario", *words], capture_output=True, text=True, check=True).stdout

    found: dict[str, Settings] = {}
    for line in command("list").splitlines():
        scenario = tomllib.loads(command("show", line.split()[0]))
        if scenario["workload"]["kind"] != "push":
            seconds = sum(seconds_of(scenario["run"][key]) for key in ("duration", "warmup"))
            seconds = min(seconds, SHIPPED_SECONDS_MAX)
            found[line.split()[0]] = {"run.warmup": "0 s", "run.duration": f"{round(seconds * 1e6)} us"}
    return found


def run_shipped(simulator: Simulator, only: str, threads: int) -> int:
    """Print the figures of the shipped scenarios; return how many end without a result."""
    chosen = {name: sets for name, sets in shipped(simulator.fanin).items() if only in name}
    print(row("scenario", "mean (p99) of `slowdown_bound`", "drops", "timeouts", "largest queue"))
    print("|---|---|---|---|---|")
    failures = too_long = 0
    with ThreadPoolExecutor(threads) as pool:
        runs = pool.map(lambda one: simulator.run(*one), chosen.items())
        for name, run in zip(chosen, runs, strict=True):
            has_result = not run.failure and not math.isnan(run.mean)
            # A run that is too long says nothing about the technique.
            is_too_long = run.failure.startswith(TOO_LONG)
            too_long += is_too_long
            failures += not has_result and not (is_too_long and name in LONG)
            reason = run.failure.removeprefix("error: ") or "no event"
            reached = f"{run.mean:.3f} ({run.p99:.2f})" if has_result else reason
            figures = (whole(run.drops), whole(run.timeouts), kilobytes(run.queue_kb))
            print(row(name, reached, *figures), flush=True)
    print(f"\n{len(chosen)} scenarios, without a result {failures}, beyond the time limit {too_long}")
    return failures


def run_family(simulator: Simulator, seed: int, numbers: Sequence[int], threads: int, worst: int) -> int:
    """Print the figures of random systems and name the worst; return how many meet the targets."""
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
    return sum(met)


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
    parser.add_argument("part", choices=("targets", "shipped", "family", "map"))
    default = os.environ.get("FANIN_BIN", str(ROOT / "target" / "release" / "fanin"))
    parser.add_argument("--fanin", default=default, help="the command")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="the technique's settings"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cpu-seconds", type=int, default=120)
    parser.add_argument("--only", default="", help="targets, shipped: those whose names contain this text")
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
    if options.part == "shipped":
        return 1 if run_shipped(simulator, options.only, options.threads) else 0
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    numbers = range(options.draws) if options.draw is None else [options.draw]
    if options.draw is not None:
        sets = draw(seed, options.draw).settings | technique
        print(
            f"{options.fanin} sim thesis-a-1000hz "
            + " ".join(f"--set '{key}={value}'" for key, value in sets.items())
        )
    met = run_family(simulator, seed, numbers, options.threads, options.worst)
    return 1 if met < len(numbers) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
